"""The cookie that a browser gets for a code or the token: `<role>.<issued>.<nonce>.<signature>`.

Nothing is kept of it: the signature is made with the token, so it survives a restart and ends when the token is
replaced. Browsers keep cookies by host and not by port, so its name carries the port, and the name is signed as well.
Under TLS the prefix `__Host-` keeps other hosts of the same domain, and plain HTTP, from setting it.
"""

import hmac
import re
import secrets
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from typing import cast

from dragoman.bridge.guard.grant import Role
from dragoman.bridge.guard.token import Token

LIFE_S = 30 * 24 * 3600
"""A browser that was not here for a month asks for a new link."""

_CLOCK_SLACK_S = 300
"""How far in the future a cookie may have been made: clocks are set back now and then."""

_NONCE_BYTES = 9
_MAX_SEEN = 8
"""Cookies of our name that are looked at in one request: a page of another port can add some."""

_VALUE = re.compile(r"(owner|reader)\.([0-9]{1,12})\.([A-Za-z0-9_-]{12})\.([A-Za-z0-9_-]{43})")


class Cookies:
    """The cookies of one bridge."""

    def __init__(self, token: Token, port: int, *, is_secure: bool, clock: Callable[[], float] = time.time) -> None:
        self.name = f"__Host-dragoman_{port}" if is_secure else f"dragoman_{port}"
        self._token = token
        self._clock = clock
        self._traits = "Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if is_secure else "")

    def make(self, role: Role) -> str:
        """Return a `Set-Cookie` that lets a browser in."""
        claim = f"{role}.{int(self._clock())}.{secrets.token_urlsafe(_NONCE_BYTES)}"
        return f"{self.name}={claim}.{self._sign(claim)}; Max-Age={LIFE_S}; {self._traits}"

    def remove(self) -> str:
        """Return a `Set-Cookie` that makes a browser forget it."""
        return f"{self.name}=; Max-Age=0; {self._traits}"

    def read(self, header: str) -> Role | None:
        """Return the role of the first cookie in this header that is ours and still good."""
        for _, value in zip(range(_MAX_SEEN), self._values(header), strict=False):
            role = self._judge(value)
            if role is not None:
                return role
        return None

    def has_any(self, header: str) -> bool:
        """Say whether there is a cookie of our name, good or not."""
        return next(self._values(header), None) is not None

    def _values(self, header: str) -> Iterator[str]:
        for pair in header.split(";"):
            name, _, value = pair.strip().partition("=")
            if name == self.name:
                yield value

    def _judge(self, value: str) -> Role | None:
        found = _VALUE.fullmatch(value)
        if found is None:
            return None
        role, issued, nonce, signature = found.groups()
        if not hmac.compare_digest(signature, self._sign(f"{role}.{issued}.{nonce}")):
            return None
        age_s = self._clock() - int(issued)
        return cast("Role", role) if -_CLOCK_SLACK_S <= age_s < LIFE_S else None

    def _sign(self, claim: str) -> str:
        signature = self._token.sign(b"cookie", f"{self.name}={claim}".encode())
        return urlsafe_b64encode(signature).decode().rstrip("=")
