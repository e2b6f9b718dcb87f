"""The token: one long random word in a file for its owner alone, which opens everything.

It is made once and kept, so that programs and cookies survive a restart. Removing the file and starting anew replaces
it, and every cookie that was signed with it is then worth nothing.
"""

import hmac
import os
import re
import secrets
from hashlib import sha256
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.files.private_file import Exposed, PrivateFile, next_step

FILE_NAME = "token"

_TOKEN_BYTES = 32
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,512}")
"""At least 192 bits; only letters that a header, a cookie and a WebSocket subprotocol all allow."""


class TokenUnusable(DragomanError):
    """The file of the token cannot be used; what is in it is not told."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the token in {path} cannot be used: {problem}; {remedy}")


class Token:
    """A secret that does not show itself by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not _TOKEN.fullmatch(value.encode()):
            raise ValueError("a token has 32 to 512 letters, digits, - and _")
        self._value = value

    def __repr__(self) -> str:
        return "Token(hidden)"

    def reveal(self) -> str:
        """Return it, for whoever is to have it."""
        return self._value

    def matches(self, given: str) -> bool:
        """Say whether this is the token, in a time that does not tell how much of it was right."""
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self._value.encode())

    def sign(self, purpose: bytes, message: bytes) -> bytes:
        """Sign a message for one purpose, with a key that only the token gives."""
        key = hmac.digest(self._value.encode(), b"dragoman " + purpose, sha256)
        return hmac.digest(key, message, sha256)


def new_token() -> Token:
    """Make one."""
    return Token(secrets.token_urlsafe(_TOKEN_BYTES))


def keep_token(directory: Path) -> Token:
    """Return the token that is kept in this directory, made now if there is none; raises TokenUnusable."""
    path = directory / FILE_NAME
    file = PrivateFile(path, secret=True)
    try:
        with file.writing():
            token = _read(file)
            if token is None:
                token = new_token()
                file.replace(token.reveal().encode() + b"\n")
            return token
    except TimeoutError:
        raise TokenUnusable(path, "another process is making it", "try again") from None
    except Exposed as error:
        raise TokenUnusable(path, error.problem, _remedy(path, error)) from None
    except OSError as error:
        problem = error.strerror or type(error).__name__
        remedy = next_step(error, f"see that this user can read and write {os.fspath(directory)}")
        raise TokenUnusable(path, problem, remedy) from None


def _read(file: PrivateFile) -> Token | None:
    try:
        content = file.read().strip()
    except FileNotFoundError:
        return None
    if not _TOKEN.fullmatch(content):
        raise TokenUnusable(file.path, "it is damaged", "remove it, and a new one is made")
    return Token(content.decode())


def _remedy(path: Path, error: Exposed) -> str:
    again = "remove it, and a new one is made"
    return f"{again} (or, if nobody can have seen it, run `chmod 600 {path}`)" if error.by_mode else again
