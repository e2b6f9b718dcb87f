"""The keys stored by `dragoman login` or on the page: `<home>/keys.json`, one per provider or address.

    {"anthropic": "…", "http://127.0.0.1:1234/v1": "…"}

Only the owner may access the file. A damaged file, a link, or a file that others could read or write is refused, with a
message that never quotes it. The file is read each time, so a login in another process takes effect at once.
"""

from pathlib import Path
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

import msgspec

from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile, PrivateFileError, PrivateJson

M = TypeVar("M")

FILE_NAME = "keys.json"

MAX_KEY_LENGTH = 8192
"""The longest keys are signed tokens of about 2,000 characters. Longer ones fit into no header."""

_START_AGAIN = "remove it and run `dragoman login` again"
_decode = msgspec.json.Decoder(dict[str, str]).decode


class KeysFileError(PrivateFileError):
    """The key file cannot be used. The message does not quote it."""

    content: ClassVar[str] = "keys"


class InvalidKeyError(DragomanError):
    """The text is not a valid key."""


@runtime_checkable
class UsesKeys(Protocol):
    """A model that may need a key."""

    def use_keys(self, keys: "KeyStore") -> None:
        """Use these keys if the model has none."""
        ...


class KeyStore:
    """The stored keys of one home, by provider or address."""

    def __init__(self, home: Path) -> None:
        self.path = home / FILE_NAME
        chmod = f"run `chmod 600 {self.path}`, and replace the keys if they may have been seen"
        private = PrivateFile(self.path, secret=True)
        self._file = PrivateJson(private, KeysFileError, start_again=_START_AGAIN, make_private=chmod)

    def find(self, provider: str) -> str | None:
        """Return the stored key for a provider. Raises KeysFileError."""
        return self._read().get(provider)

    def save(self, provider: str, key: str) -> None:
        """Store a key and replace the old one. Raises InvalidKeyError or KeysFileError."""
        check_key(key)
        with self._file.writing():
            self._file.write({**self._read(), provider: key})

    def remove(self, provider: str) -> bool:
        """Delete a key and return whether there was one. Raises KeysFileError."""
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
            raise KeysFileError(self.path, "it is damaged", _START_AGAIN) from None


def check_key(key: str) -> None:
    """Check that the text can be a key. Raises InvalidKeyError, which does not quote it."""
    if not key:
        raise InvalidKeyError("no key was given; nothing was changed")
    if len(key) > MAX_KEY_LENGTH:
        raise InvalidKeyError(f"the key has more than {MAX_KEY_LENGTH:,} characters; nothing was changed")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise InvalidKeyError("a key must be one line of letters, digits and symbols; nothing was changed")


def with_keys(model: M, keys: KeyStore) -> M:
    """Make a provider's model use these keys. Other models need none."""
    if isinstance(model, UsesKeys):
        model.use_keys(keys)
    return model
