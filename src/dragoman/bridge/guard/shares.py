"""Shares: read-only access of other users to one session or to all, until it expires or the owner revokes it.

A share is opened by a link with a one-time code. The browser that opens the link gets a cookie that names the share.
The share is looked up for each request, so the cookie is worthless once the share has ended. Shares are stored in
`<home>/bridge/shares.json`, with the hashes of the unused codes. No file contains a code. Bridges that share a database
store them there (`nodes/access.py`).
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from dragoman.bridge.guard.credentials import hash_code, make_code
from dragoman.cancellation import finish_in_thread
from dragoman.errors import DragomanError
from dragoman.files.replacement import replace_file
from dragoman.store.naming import link_damaged

SHARES_FILE = "shares.json"

LINK_LIFE_S = 24 * 3600
"""Time to open a link that was mailed. After a day, a stranger is more likely to find it."""

MAX_LIFE_S = 30 * 24 * 3600
"""Longest life of a share. A cookie lives equally long."""

MAX_SHARES = 200
"""Shares at a time. A longer list would be hard to review."""

WITHDRAWN = "the owner revoked this link"
OVER = "this link has expired; ask the owner for a new one"

_ID_BYTES = 9
_OWN_RIGHTS = 0o600

_log = logging.getLogger("dragoman.bridge.guard")


class TooManySharesError(DragomanError):
    """The limit on shares is reached."""

    def __init__(self) -> None:
        super().__init__(f"there are {MAX_SHARES} read-only links, the limit; revoke some first")


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """The read-only access of one other user."""

    id: str
    created: int
    """In seconds since 1970, like `expires`."""
    expires: int
    agent: str | None = None
    session: str | None = None
    """The shared session of the agent, or None for all sessions of all agents."""
    title: str = ""
    """The title of the session when it was shared, for the list of shares."""
    unused: str | None = None
    """The hash of the link's code, until the link is opened."""


class Shares:
    """The shares of one bridge, in memory and, if a path is given, in a file."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.on_ended: Callable[[str, str], None] | None = None
        self._path = path
        self._clock = clock
        self._shares: dict[str, Share] = {} if path is None else _read(path)
        self._changing = asyncio.Lock()

    def find(self, share_id: str) -> Share | None:
        """Return a valid share, or None if it has expired or was revoked."""
        share = self._shares.get(share_id)
        return share if share is not None and self._clock() < share.expires else None

    async def look_up(self, share_id: str) -> None:
        """Do nothing, because all shares are known here."""

    async def list(self) -> "list[Share]":
        """Return all valid shares, latest first."""
        return latest_first(self._current())

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share expires."""
        return max(0.0, share.expires - self._clock())

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Create a share and the code for its link. Raises TooManySharesError and OSError."""
        share, code = draft_share(int(self._clock()), life_s, agent, session, title)
        async with self._changing:
            kept = {each.id: each for each in self._current()}
            if len(kept) >= MAX_SHARES:
                raise TooManySharesError
            await self._write({**kept, share.id: share})
        return share, code

    async def redeem(self, code: str) -> Share | None:
        """Use a code and return its share, or None if it is unknown, used or too old. Raises OSError."""
        hashed = hash_code(code).hex()
        async with self._changing:
            share = next((each for each in self._current() if each.unused == hashed), None)
            if share is None or self._clock() >= share.created + LINK_LIFE_S:
                return None
            used = msgspec.structs.replace(share, unused=None)
            await self._write({**self._shares, share.id: used})
            return used

    async def withdraw(self, share_id: str) -> bool:
        """Revoke a share. Return whether it existed. After an OSError the share returns with the next restart."""
        async with self._changing:
            if share_id not in self._shares:
                return False
            self._shares = {each.id: each for each in self._current() if each.id != share_id}
            if self.on_ended is not None:
                self.on_ended(share_id, WITHDRAWN)
            await self._write(self._shares)
            return True

    def _current(self) -> "list[Share]":
        return [share for share in self._shares.values() if self._clock() < share.expires]

    async def _write(self, shares: dict[str, Share]) -> None:
        path = self._path
        if path is not None:
            data = msgspec.json.encode(list(shares.values()))
            await finish_in_thread(lambda: replace_file(path, data, mode=_OWN_RIGHTS))
        self._shares = shares


def draft_share(now: int, life_s: float, agent: str | None, session: str | None, title: str) -> tuple[Share, str]:
    """Return a new share and the code for its link."""
    code = make_code()
    expires = now + int(min(life_s, MAX_LIFE_S))
    return Share(secrets.token_urlsafe(_ID_BYTES), now, expires, agent, session, title, hash_code(code).hex()), code


def latest_first(shares: Iterable[Share]) -> list[Share]:
    """Return shares sorted by creation time, latest first."""
    return sorted(shares, key=lambda share: share.created, reverse=True)


def _read(path: Path) -> dict[str, Share]:
    try:
        return {share.id: share for share in msgspec.json.decode(path.read_bytes(), type=list[Share])}
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        aside = link_damaged(path)
        path.unlink()
        _log.warning("%s cannot be read (%s) and is kept as %s; all read-only links are gone", path, error, aside)
        return {}
