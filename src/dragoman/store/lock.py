"""The lock that allows one writer per session: a `flock` on a file. It ends with the process that holds it.

The lock file names its holder, for the error that other processes raise. On a full disk the file is empty, and the
error only names "another process". Releasing the lock removes the file. So a process that acquired a lock checks that
the locked file still has its path. If it does not, the process starts again.
"""

import errno
import fcntl
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.errors import SessionBusyError

_LOOKS = 100
_PAUSE_S = 0.002
"""A holder writes its pid right after it acquired the lock. A process that finds no pid yet retries for up to 0.2 s."""


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holder of a lock."""

    pid: int
    host: str
    since: str
    note: str = ""
    """A text that the holder publishes, such as its address."""


_decode_holder = msgspec.json.Decoder(Holder).decode


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if _is_at(fd, self._path):
            with suppress(OSError):
                self._path.unlink()
        # A child between fork and exec has a copy of the descriptor, so closing it here would not be enough.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def acquire(path: Path, session_id: str, *, patient: bool = True, note: str = "") -> Lock:
    """Acquire the lock of a session, or raise SessionBusyError. Raises OSError.

    If `patient` is set, wait shortly for the name of the holder, so that the error has it.
    """
    for _ in range(_LOOKS if patient else 1):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            lock = _lock(fd, path, note)
        except BaseException:
            os.close(fd)
            raise
        if lock is not None:
            return lock
        os.close(fd)
        holder = _read_holder(path)
        if holder is not None:
            raise SessionBusyError(session_id, holder.pid, holder.host)
        if patient:
            time.sleep(_PAUSE_S)
    raise SessionBusyError(session_id, None, None)


def find_holder(path: Path) -> Holder | None:
    """Return the process of this machine and user that holds a lock, or None if there is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        if os.fstat(fd).st_uid != os.geteuid() or not _is_locked(fd):
            return None
        holder = _read_holder(path)
        return holder if holder is not None and holder.host == os.uname().nodename else None
    except OSError:
        return None
    finally:
        os.close(fd)


def _is_locked(fd: int) -> bool:
    """Return whether another open file holds the lock. Only then is the content of the lock file valid."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _lock(fd: int, path: Path, note: str) -> Lock | None:
    """Lock an open file. Return None if another process holds the lock, or if it is no longer the lock file."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return None
    if not _is_at(fd, path):
        return None
    with suppress(OSError):  # on a full disk the lock is valid without the name of its holder
        _write_holder(fd, note)
    return Lock(path, fd)


def _is_at(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.lstat())
    except FileNotFoundError:
        return False


def _write_holder(fd: int, note: str) -> None:
    holder = Holder(os.getpid(), os.uname().nodename, datetime.now(UTC).isoformat(timespec="seconds"), note)
    os.ftruncate(fd, 0)
    os.pwrite(fd, msgspec.json.encode(holder) + b"\n", 0)


def _read_holder(path: Path) -> Holder | None:
    """Return the holder of a lock, or None if it has not written its name yet or is dead."""
    try:
        holder = _decode_holder(path.read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
    return holder if _may_live(holder) else None


def _may_live(holder: Holder) -> bool:
    if holder.host != os.uname().nodename:
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
