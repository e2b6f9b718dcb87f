"""The first three descriptors of a process, which a job of a CI system or of cron may start without."""

import os
import sys

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_missing() -> None:
    """Put /dev/null where stdin, stdout or stderr is closed.

    Else the next file or socket that is opened gets its number, and is taken for it.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if not is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free: this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


def is_open(descriptor: int) -> bool:
    """Tell whether a descriptor is one of this process."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True
