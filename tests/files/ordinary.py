import os
from contextlib import contextmanager


@contextmanager
def ordinary_user():
    """Drop root rights for a while, because permissions do not restrict root."""
    was = os.geteuid()
    if was == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        if was == 0:
            os.seteuid(0)
