"""The keys that a person gave with `dragoman login` or in the page: `<home>/keys.json`, one a provider or address.

    {"anthropic": "…", "http://127.0.0.1:1234/v1": "…"}

The file is for its owner alone. One that others could have read or written, a link, or a damaged one is refused in
words, which never hold its content. It is read anew each time: a login in another process counts from then on.
"""

from pathlib import Path
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import msgspec

from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile, PrivateFileUnusable, PrivateJson

M = TypeVar("M")

FILE_NAME = "keys.json"

MAX_KEY_LENGTH = 8192
"""The longest keys are signed tokens of some 2,000 characters; longer ones fit into no header."""

_START_AGAIN = "remove it and run `dragoman login` again"
_decode = msgspec.json.Decoder(dict[str, str]).decode


class KeysUnusable(PrivateFileUnusable):
    """The file of the keys cannot be used; the message holds nothing of its content."""

    content: ClassVar[str] = "keys"


class BadKey(DragomanError):
    """The given text is no key."""


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
        chmod = f"run `chmod 600 {self.path}`, and replace the keys if somebody may have seen them"
        private = PrivateFile(self.path, secret=True)
        self._file = PrivateJson(private, KeysUnusable, start_again=_START_AGAIN, make_private=chmod)

    def find(self, provider: str) -> str | None:
        """Return the key that is kept for a provider; raises KeysUnusable."""
        return self._read().get(provider)

    def keep(self, provider: str, key: str) -> None:
        """Keep a key in place of the one before; raises BadKey and KeysUnusable."""
        check_key(key)
        with self._file.writing():
            self._file.write({**self._read(), provider: key})

    def remove(self, provider: str) -> bool:
        """Forget a key and say whether there was one; raises KeysUnusable."""
        if not self.path.parent.is_dir():
            return False
        with self._file.writing():
            keys = self._read()
            if provider not in keys:
                return False
            self._file.write({name: key for name, key in keys.items() if name != provider})
            return True

    def _read(self) -> dict[str, str]:
        try:
            return _decode(self._file.read())
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise self._file.explain(error) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            # The decoder's message may quote the file.
            raise KeysUnusable(self.path, "it is damaged", _START_AGAIN) from None


def check_key(key: str) -> None:
    """See that it can be a key; raises BadKey, which does not hold it."""
    if not key:
        raise BadKey("no key was given; nothing was changed")
    if len(key) > MAX_KEY_LENGTH:
        raise BadKey(f"that is no key: it has more than {MAX_KEY_LENGTH:,} characters; nothing was changed")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise BadKey("that is no key: a key is one line of letters, digits and signs; nothing was changed")


def give_keys(model: M, keys: KeyStore) -> M:
    """Let a provider's model use these keys; the others need none."""
    if isinstance(model, UsesKeys):
        model.use_keys(keys)
    return model
