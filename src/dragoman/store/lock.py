"""The lock that allows one writer per session. It ends with the process that holds it.

A process may hold the locks of thousands of sessions, so a lock needs no descriptor of its own. All locks of a
directory are record locks (`fcntl`) of one byte each in its file `held`. The offset of the byte is a hash of the lock's
name. The file at the path of the lock names its holder, for the error that other processes raise. On a full disk it is
missing, and the error only names "another process".

Record locks belong to the process, and closing any descriptor of the file releases all of them. So this module opens
the file once per process, and it alone knows which locks this process holds.
"""

import errno
import fcntl
import os
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from zlib import crc32

import msgspec

from dragoman.errors import SessionBusyError

_LOOKS = 100
_PAUSE_S = 0.002
"""A holder writes its pid right after it acquired the lock. A process that finds no pid yet retries for up to 0.2 s."""

_FILE = "held"
_FLAGS = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Holder(msgspec.Struct, frozen=True, omit_defaults=True):
    """The holder of a lock."""

    pid: int
    host: str
    since: str
    note: str = ""
    """A text that the holder publishes, such as its address."""


_decode_holder = msgspec.json.Decoder(Holder).decode


class _Directory:
    """The locks of one directory that this process holds. Used under `_guard`."""

    def __init__(self, path: Path, *, create: bool) -> None:
        self._fd = os.open(path / _FILE, _FLAGS | (os.O_CREAT if create else 0), 0o600)
        self._held: set[str] = set()

    @property
    def is_usable(self) -> bool:
        """Whether its file still has a name, so that other processes find it."""
        return os.fstat(self._fd).st_nlink > 0

    @property
    def is_ours(self) -> bool:
        """Whether its file belongs to the user of this process."""
        return os.fstat(self._fd).st_uid == os.geteuid()

    def acquire(self, name: str) -> bool:
        """Acquire a lock. Return whether it was free."""
        if name in self._held or not self._try(name, fcntl.LOCK_EX):
            return False
        self._held.add(name)
        return True

    def release(self, name: str) -> None:
        """Release a lock."""
        self._held.discard(name)
        fcntl.lockf(self._fd, fcntl.LOCK_UN, 1, _offset(name))

    def is_held(self, name: str) -> bool:
        """Return whether this or another process holds a lock."""
        if name in self._held or not self._try(name, fcntl.LOCK_SH):
            return True
        self.release(name)
        return False

    def close_unused(self) -> bool:
        """Close the file unless a lock is held. Return whether it is closed."""
        if not self._held:
            os.close(self._fd)
        return not self._held

    def _try(self, name: str, kind: int) -> bool:
        try:
            fcntl.lockf(self._fd, kind | fcntl.LOCK_NB, 1, _offset(name))
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):
                raise
            return False
        return True


_guard = threading.Lock()
_directories: dict[tuple[int, int], _Directory] = {}
"""The directories in which this process holds locks, by device and inode. There is one of each per process."""


class Lock:
    """A lock that this process holds."""

    def __init__(self, path: Path) -> None:
        """Acquire the lock. Raises BlockingIOError if another process or part of this process holds it."""
        self._path = str(path)  # a Path takes several times as much
        with _using(path.parent, create=True) as directory:
            if not directory.acquire(path.name):
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        self._directory: _Directory | None = directory

    def release(self) -> None:
        """Release the lock. A second call does nothing."""
        directory, self._directory = self._directory, None
        if directory is None:
            return
        path = Path(self._path)
        with suppress(OSError):
            path.unlink()
        with _guard:
            directory.release(path.name)
            _close_unused(directory)


def acquire(path: Path, session_id: str, *, patient: bool = True, note: str = "") -> Lock:
    """Acquire the lock of a session, or raise SessionBusyError. Raises OSError.

    If `patient` is set, wait shortly for the name of the holder, so that the error has it.
    """
    for _ in range(_LOOKS if patient else 1):
        with suppress(BlockingIOError):
            lock = Lock(path)
            with suppress(OSError):  # on a full disk the lock is valid without the name of its holder
                _write_holder(path, note)
            return lock
        holder = _read_holder(path)
        if holder is not None:
            raise SessionBusyError(session_id, holder.pid, holder.host)
        if patient:
            time.sleep(_PAUSE_S)
    raise SessionBusyError(session_id, None, None)


def find_holder(path: Path) -> Holder | None:
    """Return the process of this machine and user that holds a lock, or None if there is none."""
    try:
        with _using(path.parent, create=False) as directory:
            is_held = directory.is_ours and directory.is_held(path.name)
    except OSError:
        return None
    holder = _read_holder(path) if is_held else None
    return holder if holder is not None and holder.host == os.uname().nodename else None


@contextmanager
def _using(path: Path, *, create: bool) -> Generator[_Directory]:
    """Open the locks of a directory. They stay open while this process holds one of them."""
    with _guard:
        status = path.stat()
        key = status.st_dev, status.st_ino
        directory = _directories.get(key)
        if directory is None or not directory.is_usable:
            directory = _directories[key] = _Directory(path, create=create)
        try:
            yield directory
        finally:
            _close_unused(directory)


def _close_unused(directory: _Directory) -> None:
    if directory.close_unused():
        for key in [key for key, known in _directories.items() if known is directory]:
            del _directories[key]


def _offset(name: str) -> int:
    data = name.encode()
    return crc32(data) << 30 | crc32(data[::-1]) >> 2


def _write_holder(path: Path, note: str) -> None:
    holder = Holder(os.getpid(), os.uname().nodename, datetime.now(UTC).isoformat(timespec="seconds"), note)
    fd = os.open(path, _FLAGS | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(fd, msgspec.json.encode(holder) + b"\n")
    finally:
        os.close(fd)


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
