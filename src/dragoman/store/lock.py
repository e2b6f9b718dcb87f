"""One writer a session: a file with a `flock` on it, which dies with its holder.

The lock file names its holder, for the error that others get; on a full disk it is empty, and they are told of
"another process". It is removed when the lock is given back, so a process that gets a lock looks whether the file it
is on still has its name; if not, it begins anew.
"""

import errno
import fcntl
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.errors import SessionBusy

_LOOKS = 100
_PAUSE_S = 0.002
"""A holder writes its pid right after it got the lock; a loser that is quicker tries again, for 0.2 s at most."""


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holder of a lock."""

    pid: int
    host: str
    since: str
    note: str = ""
    """What the holder has others know, such as its address."""


_decode_holder = msgspec.json.Decoder(Holder).decode


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        """Release it; a second time does nothing."""
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        if _is_at(fd, self._path):
            with suppress(OSError):
                self._path.unlink()
        # A child between fork and exec has a copy of the descriptor: closing ours would not be enough.
        fcntl.flock(fd, fcntl.LOCK_UN)
        os.close(fd)


def acquire(path: Path, session_id: str, *, patient: bool = True, note: str = "") -> Lock:
    """Take the lock of a session, or raise SessionBusy, at once unless the holder is to be named; raises OSError."""
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
            raise SessionBusy(session_id, holder.pid, holder.host)
        if patient:
            time.sleep(_PAUSE_S)
    raise SessionBusy(session_id, None, None)


def find_holder(path: Path) -> Holder | None:
    """Return the process of this machine and user that holds a lock now; None if there is none."""
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
    """Tell whether another open file has the lock: only then what it wrote still holds."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(fd, fcntl.LOCK_UN)
    return False


def _lock(fd: int, path: Path, note: str) -> Lock | None:
    """Lock a file that was opened; None when another has it, or when it is not the lock file any more."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return None
    if not _is_at(fd, path):
        return None
    with suppress(OSError):  # a full disk has no room for it, and the lock holds all the same
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
    """Read the holder of a lock; None when it is not written yet, or is dead."""
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
