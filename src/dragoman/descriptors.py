"""The descriptors of a process: the first three, which a job of cron may start without, and how many there may be."""

import os
import sys

_MODEST_LIMIT = 10_240
"""The most that macOS allows, although it reports more."""

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


def raise_fd_limit() -> int:
    """Raise the soft limit on open files as far as the hard one allows, and return it."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MODEST_LIMIT):
        if wanted != resource.RLIM_INFINITY and wanted > soft != resource.RLIM_INFINITY:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            except (OSError, ValueError):
                continue
            return wanted
    return soft
