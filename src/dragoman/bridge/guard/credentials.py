"""The credentials of a bridge: its token, the cookies of browsers, and the one-time codes of links.

The **token** is a long random word in a file that only its owner can read. It is created once and kept, so that
programs and cookies survive a restart. The user replaces it by removing the file. Then every cookie that was signed
with it is invalid.

A **cookie** is `<subject>.<issued>.<nonce>.<signature>`. The subject is the owner or a share (`guard/shares.py`). The
signature is made with the token, so the bridge stores no cookies. Browsers keep cookies per host and not per port. The
name of the cookie therefore contains the public port, which is the same for all bridges behind it, and a hash of the
public path if there is one. The name is signed as well. Under TLS the prefix `__Host-` prevents other hosts of the
domain and plain HTTP from setting the cookie.

The **metrics token** gives a monitoring program access to `/metrics` only. It is derived from the token, so it changes
together with the token and does not reveal it.

A **code** replaces the token in a printed link. One browser can exchange it once for an owner's cookie.

The **realm** separates bridges with different tokens that share a database. It is also derived from the token. A new
token therefore starts without the earlier codes and shares.
"""

import hmac
import os
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import ClassVar

from dragoman.files.private_file import ExposedFileError, PrivateFile, PrivateFileError, next_step
from dragoman.running_bridge import TOKEN_FILE

METRICS_TOKEN_FILE = "metrics-token"  # noqa: S105 -- the name of the file

COOKIE_LIFE_S = 30 * 24 * 3600
"""A browser that was not used for a month needs a new link."""

CODE_LIFE_S = 900.0
"""Time to carry a link to another device. A link found later in a history has expired."""

MAX_CODES = 64
"""Unused codes at a time. A new code beyond this limit removes the oldest."""

_TOKEN_BYTES = 32
_TOKEN = re.compile(rb"[A-Za-z0-9_-]{32,512}")
"""At least 192 bits, of characters that a header, a cookie and a WebSocket subprotocol all allow."""

_CLOCK_SLACK_S = 300
"""A cookie may be issued this far in the future, because clocks are sometimes set back."""

_NONCE_BYTES = 9
_CODE_BYTES = 24
_MAX_COOKIES_READ = 8
"""Cookies with our name that are read per request. A page on another port can add some."""

OWNER = "owner"
"""The subject of the owner's cookie. The subject of a reader's cookie is `share-` and the id of the share."""

SHARE_PREFIX = "share-"

_COOKIE = re.compile(r"(owner|share-[A-Za-z0-9_-]{12})\.([0-9]{1,12})\.([A-Za-z0-9_-]{12})\.([A-Za-z0-9_-]{43})")


class TokenFileError(PrivateFileError):
    """The token file cannot be used. The message does not contain the token."""

    content: ClassVar[str] = "token"


class Token:
    """A secret that no `repr` shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        if not _TOKEN.fullmatch(value.encode()):
            raise ValueError("a token has 32 to 512 letters, digits, - and _")
        self._value = value

    def __repr__(self) -> str:
        return "Token(hidden)"

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def matches(self, given: str) -> bool:
        """Return whether a text is the token, in constant time."""
        return hmac.compare_digest(given.encode(errors="surrogateescape"), self._value.encode())

    def sign(self, purpose: bytes, message: bytes) -> bytes:
        """Sign a message for one purpose, with a key that is derived from the token."""
        key = hmac.digest(self._value.encode(), b"dragoman " + purpose, sha256)
        return hmac.digest(key, message, sha256)


def new_token() -> Token:
    """Return a random token."""
    return Token(secrets.token_urlsafe(_TOKEN_BYTES))


def keep_token(directory: Path) -> Token:
    """Return the token of a directory. Create it if it is missing. Raises TokenFileError."""
    path = directory / TOKEN_FILE
    file = PrivateFile(path, secret=True)
    try:
        with file.writing():
            token = _read_token(file)
            if token is None:
                token = new_token()
                file.replace(token.reveal().encode() + b"\n")
            return token
    except TimeoutError:
        raise TokenFileError(path, "another process is creating it", "try again") from None
    except ExposedFileError as error:
        raise TokenFileError(path, error.problem, _remedy(path, error)) from None
    except OSError as error:
        problem = error.strerror or type(error).__name__
        remedy = next_step(error, f"check that this user can read and write {os.fspath(directory)}")
        raise TokenFileError(path, problem, remedy) from None


def metrics_token(token: Token) -> Token:
    """Return the metrics token, which only gives access to the bridge's metrics."""
    return Token(urlsafe_b64encode(token.sign(b"metrics", b"")).decode().rstrip("="))


def keep_metrics_token(directory: Path, token: Token) -> None:
    """Write the metrics token to its file, for the configuration of a monitoring program. Raises OSError."""
    file = PrivateFile(directory / METRICS_TOKEN_FILE, secret=True)
    with file.writing():
        file.replace(metrics_token(token).reveal().encode() + b"\n")


def realm_of(token: Token) -> str:
    """Return the realm of the bridges with this token. It does not reveal the token."""
    return token.sign(b"realm", b"").hex()


def make_code() -> str:
    """Return a code that cannot be guessed."""
    return secrets.token_urlsafe(_CODE_BYTES)


def hash_code(code: str) -> bytes:
    """Return the hash of a code. The time of a lookup by hash reveals nothing about the code."""
    return sha256(code.encode(errors="surrogateescape")).digest()


def _read_token(file: PrivateFile) -> Token | None:
    try:
        content = file.read().strip()
    except FileNotFoundError:
        return None
    if not _TOKEN.fullmatch(content):
        raise TokenFileError(file.path, "it is damaged", "remove it, and a new one is created")
    return Token(content.decode())


def _remedy(path: Path, error: ExposedFileError) -> str:
    again = "remove it, and a new one is created"
    return f"{again} (or, if nobody can have seen it, run `chmod 600 {path}`)" if error.by_mode else again


class Cookies:
    """Makes and checks the cookies of one bridge."""

    def __init__(self, token: Token, place: str, *, is_secure: bool, clock: Callable[[], float] = time.time) -> None:
        self.name = f"__Host-dragoman_{place}" if is_secure else f"dragoman_{place}"
        self._token = token
        self._clock = clock
        self._attributes = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if is_secure else "")

    def make(self, subject: str = OWNER, life_s: float = COOKIE_LIFE_S) -> str:
        """Return the `Set-Cookie` value that logs a browser in."""
        claim = f"{subject}.{int(self._clock())}.{secrets.token_urlsafe(_NONCE_BYTES)}"
        max_age_s = int(min(life_s, COOKIE_LIFE_S))
        return f"{self.name}={claim}.{self._sign(claim)}; Max-Age={max_age_s}; {self._attributes}"

    def remove(self) -> str:
        """Return the `Set-Cookie` value that deletes a browser's cookie."""
        return f"{self.name}=; Max-Age=0; {self._attributes}"

    def read(self, header: str) -> str | None:
        """Return the subject of the first valid cookie of this bridge in a header, or None."""
        for _, value in zip(range(_MAX_COOKIES_READ), self._values(header), strict=False):
            subject = self._check(value)
            if subject is not None:
                return subject
        return None

    def has_any(self, header: str) -> bool:
        """Return whether a header has a cookie with our name, valid or not."""
        return next(self._values(header), None) is not None

    def _values(self, header: str) -> Iterator[str]:
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.name:
                yield value

    def _check(self, value: str) -> str | None:
        found = _COOKIE.fullmatch(value)
        if found is None:
            return None
        subject, issued, nonce, signature = found.groups()
        if not hmac.compare_digest(signature, self._sign(f"{subject}.{issued}.{nonce}")):
            return None
        age_s = self._clock() - int(issued)
        return subject if -_CLOCK_SLACK_S <= age_s < COOKIE_LIFE_S else None

    def _sign(self, claim: str) -> str:
        signature = self._token.sign(b"cookie", f"{self.name}={claim}".encode())
        return urlsafe_b64encode(signature).decode().rstrip("=")


class LinkCodes:
    """The unused codes of one bridge, in memory. Only their hashes are stored."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unused: dict[bytes, float] = {}

    async def make(self) -> str:
        """Return a new code, which logs in one browser once."""
        code = make_code()
        self._remove_expired()
        while len(self._unused) >= MAX_CODES:
            del self._unused[next(iter(self._unused))]
        self._unused[hash_code(code)] = self._clock() + CODE_LIFE_S
        return code

    async def redeem(self, code: str) -> bool:
        """Remove a code. Return False if it is unknown, used or expired."""
        self._remove_expired()
        return self._unused.pop(hash_code(code), None) is not None

    def _remove_expired(self) -> None:
        now = self._clock()
        for key in [key for key, end in self._unused.items() if end <= now]:
            del self._unused[key]
