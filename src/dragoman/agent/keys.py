"""The keys that a person gave with `dragoman login`: `<home>/keys.json`, one a provider.

    {"anthropic": "…"}

The file is for its owner alone, and it is only ever replaced whole, so readers need no lock. One that others could
have read or written, a link, or a damaged one is refused in words, which never hold what is in it. It is read anew
each time: a login in another process counts from then on.
"""

import fcntl
import os
import stat
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import msgspec

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.agent.models.model import Model

FILE_NAME = "keys.json"

MAX_BYTES = 1 << 20
"""Far more than the keys of all providers."""

MAX_KEY_LENGTH = 8192
"""The longest keys are signed tokens of some 2,000 characters; longer ones fit into no header."""

_FOR_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_START_AGAIN = "remove it and run `dragoman login` again"
_decode = msgspec.json.Decoder(dict[str, str]).decode


class KeysUnusable(DragomanError):
    """The file of the keys cannot be used; what is in it is not told."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the keys in {path} cannot be used: {problem}; {remedy}")


class BadKey(DragomanError):
    """What was given is no key."""


@runtime_checkable
class UsesKeys(Protocol):
    """A model that may need a key."""

    def use_keys(self, keys: "KeyStore") -> None:
        """Take the key from there when it was given none."""
        ...


class KeyStore:
    """The keys of one home, by provider."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME

    def find(self, provider: str) -> str | None:
        """Return the key that is kept for a provider; raises KeysUnusable."""
        return self._read().get(provider)

    def keep(self, provider: str, key: str) -> None:
        """Keep a key in place of the one before; raises BadKey and KeysUnusable."""
        _check(key)
        with self._writing():
            self._write({**self._read(), provider: key})

    def remove(self, provider: str) -> bool:
        """Forget a key and say whether there was one; raises KeysUnusable."""
        if not self.path.parent.is_dir():
            return False
        with self._writing():
            keys = self._read()
            if provider not in keys:
                return False
            self._write({name: key for name, key in keys.items() if name != provider})
            return True

    def _read(self) -> dict[str, str]:
        try:
            return _decode(_read_private(self.path))
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._unusable(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # What the decoder says may quote the file.
            raise KeysUnusable(self.path, "it is damaged", _START_AGAIN) from None

    def _write(self, keys: Mapping[str, str]) -> None:
        import tempfile  # 7 ms, which reading need not wait for

        data = msgspec.json.format(msgspec.json.encode(keys), indent=2)
        descriptor, temporary = tempfile.mkstemp(prefix="keys-", dir=self.path.parent)  # 0600 by nature
        try:
            with open(descriptor, "wb") as file:  # noqa: PTH123 - it is a descriptor
                file.write(data + b"\n")
                file.flush()
                os.fsync(descriptor)
            Path(temporary).replace(self.path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    @contextmanager
    def _writing(self) -> Generator[None]:
        """Be the only writer, so that two logins do not lose each other's key."""
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            descriptor = os.open(self.path.with_suffix(".lock"), flags, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                os.close(descriptor)
        except BlockingIOError:
            raise KeysUnusable(self.path, "another process is writing them", "try again") from None
        except OSError as error:
            raise self._unusable(error) from None

    def _unusable(self, error: OSError) -> KeysUnusable:
        if isinstance(error, _Exposed):
            return KeysUnusable(self.path, error.problem, error.remedy)
        return KeysUnusable(
            self.path, error.strerror or type(error).__name__, "see that this user can read and write it"
        )


class _Exposed(OSError):
    """The file is not one that its owner alone can read and write."""

    def __init__(self, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(0, problem)


def _check(key: str) -> None:
    """See that it can be a key; raises BadKey, which does not hold it."""
    if not key:
        raise BadKey("no key was given; nothing was changed")
    if len(key) > MAX_KEY_LENGTH:
        raise BadKey(f"that is no key: it has more than {MAX_KEY_LENGTH:,} characters; nothing was changed")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadKey("that is no key: a key is one line of letters, digits and signs; nothing was changed")


def give_keys(model: "Model", keys: KeyStore) -> "Model":
    """Let a provider's model use these keys; the others need none."""
    if isinstance(model, UsesKeys):
        model.use_keys(keys)
    return model


def _read_private(path: Path) -> bytes:
    """Read a file that nobody but its owner, who we are, can have read or written; raises OSError."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        if path.is_symlink():
            raise _Exposed("it is a link", _START_AGAIN) from None
        raise
    try:
        _check_private(path, os.fstat(descriptor))
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(MAX_BYTES)
    finally:
        os.close(descriptor)


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _Exposed("it is no regular file", _START_AGAIN)
    if status.st_uid != os.geteuid():
        raise _Exposed("it belongs to another user", _START_AGAIN)
    if status.st_mode & _FOR_OTHERS:
        remedy = f"run `chmod 600 {path}`, and replace the keys if somebody may have seen them"
        raise _Exposed("other users may read or write it", remedy)
