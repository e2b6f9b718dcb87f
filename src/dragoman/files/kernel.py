"""Linux's `openat2`: the kernel itself keeps a path beneath a directory, while it opens it.

The C library has no function for it, so it is called by number (the same on every machine that
Python runs on, Alpha aside). https://man7.org/linux/man-pages/man2/openat2.2.html
"""

import errno
import os
import sys
from collections.abc import Callable
from functools import cache

_OPENAT2 = 437
_NO_MAGICLINKS = 0x02
_BENEATH = 0x08
_AT_FDCWD = -100

_MISSING = (errno.ENOSYS, errno.EPERM, errno.EINVAL, errno.E2BIG)
"""What old kernels say, and filters such as those of containers."""

OpenAt2 = Callable[[int, bytes, int], int]


def open_beneath(fd: int, path: str, flags: int) -> int:
    """Open a path that stays beneath a directory, or raise OSError: EXDEV when it would leave."""
    return _load()(fd, os.fsencode(path), flags | os.O_CLOEXEC)


@cache
def is_available() -> bool:
    """Whether this kernel has `openat2`, and no filter keeps it from us."""
    if sys.platform != "linux":
        return False
    try:
        os.close(open_beneath(_AT_FDCWD, ".", os.O_PATH))
    except OSError as error:
        return error.errno not in _MISSING
    return True


@cache
def _load() -> OpenAt2:
    import ctypes

    class How(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(How), ctypes.c_size_t)
    syscall.restype = ctypes.c_long
    size = ctypes.sizeof(How)

    def openat2(fd: int, path: bytes, flags: int) -> int:
        how = How(flags, 0, _BENEATH | _NO_MAGICLINKS)
        while (result := syscall(_OPENAT2, fd, path, how, size)) < 0:
            if (code := ctypes.get_errno()) != errno.EINTR:
                raise OSError(code, os.strerror(code))
        return result

    return openat2
