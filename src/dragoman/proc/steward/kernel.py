"""What the kernel does for us where it is Linux."""

import ctypes
import os
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def prctl(option: int, value: int) -> bool:
    """Set an attribute of this process, and say whether this kernel could."""
    if not sys.platform.startswith("linux"):
        return False
    return ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0


def open_process(pid: int) -> int | None:
    """A descriptor that becomes readable when the host ends, where there are such."""
    try:
        host = os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None
    return host if os.getppid() == pid else None
