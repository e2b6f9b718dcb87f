"""One-time codes: what a printed link carries in place of the token."""

import secrets
import time
from collections.abc import Callable
from hashlib import sha256

from dragoman.bridge.guard.grant import Role

LIFE_S = 900.0
"""Long enough to walk to another room with a link, short enough that one found in a history is worth nothing."""

MAX_CODES = 64
"""Open links at a time; the oldest goes when there are more."""

_CODE_BYTES = 24


class Codes:
    """The codes that were given out and not used yet; only their hashes are kept."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: dict[bytes, tuple[Role, float]] = {}

    def make(self, role: Role) -> str:
        """Give out a code that lets one browser in, once."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        self._forget_old()
        while len(self._open) >= MAX_CODES:
            del self._open[next(iter(self._open))]
        self._open[_hash(code)] = (role, self._clock() + LIFE_S)
        return code

    def burn(self, code: str) -> Role | None:
        """Take a code back for what it is worth, which is nothing the second time."""
        self._forget_old()
        role, _ = self._open.pop(_hash(code), (None, 0.0))
        return role

    def _forget_old(self) -> None:
        now = self._clock()
        for key in [key for key, (_, end) in self._open.items() if end <= now]:
            del self._open[key]


def _hash(code: str) -> bytes:
    """Look codes up by their hash: how long that takes tells nothing of the code."""
    return sha256(code.encode(errors="surrogateescape")).digest()
