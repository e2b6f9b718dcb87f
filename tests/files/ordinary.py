import os
from contextlib import contextmanager


@contextmanager
def an_ordinary_user():
    """Root may do anything; permissions are tried as somebody else."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was == 0:
            os.seteuid(0)
