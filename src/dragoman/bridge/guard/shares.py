"""Shares: what an owner lets other people read, one session or all, until a time, or until it is withdrawn.

A share is opened by a link whose code works once; the browser that opens it gets a cookie that names the share. So a
cookie is worth as much as its share is at that moment: nothing once that is withdrawn or over. Shares are in one small
file, `<home>/bridge/shares.json`, with the hashes of the codes that were not used yet; no file has a code. Bridges that
share a database have them there (`nodes/access.py`).
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
from dragoman.store.sealed_log import keep_aside

SHARES_FILE = "shares.json"

LINK_LIFE_S = 24 * 3600
"""A link waits in a mailbox for a day; after that it is more likely found than opened."""

MAX_LIFE_S = 30 * 24 * 3600
"""As long as a cookie lives."""

MAX_SHARES = 200
"""At a time: more than a person can look through in a list."""

WITHDRAWN = "the owner has withdrawn this link"
OVER = "the time of this link is over; ask the owner for another"

_ID_BYTES = 9
_OWN_RIGHTS = 0o600

_log = logging.getLogger("dragoman.bridge.guard")


class TooManyShares(DragomanError):
    """Another share would not fit into the list."""

    def __init__(self) -> None:
        super().__init__(f"there are {MAX_SHARES} shares, the limit; withdraw some first")


class Share(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one other person may read, and until when."""

    id: str
    created: int
    """Seconds since 1970, as is `expires`."""
    expires: int
    agent: str | None = None
    session: str | None = None
    """The one session of the agent; None for all sessions of all agents."""
    title: str = ""
    """The title of the session when it was shared, for the list of shares."""
    unused: str | None = None
    """The hash of the code of its link, until somebody opens that."""


class Shares:
    """The shares of one bridge, in memory and, with a path, in their file."""

    def __init__(self, path: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self.on_ended: Callable[[str, str], None] | None = None
        self._path = path
        self._clock = clock
        self._shares: dict[str, Share] = {} if path is None else _read(path)
        self._changing = asyncio.Lock()

    def find(self, share_id: str) -> Share | None:
        """Return a share that is neither over nor withdrawn."""
        share = self._shares.get(share_id)
        return share if share is not None and self._clock() < share.expires else None

    async def look_up(self, share_id: str) -> None:
        """Do nothing: all shares are known here."""

    async def list(self) -> "list[Share]":
        """Return all shares that are neither over nor withdrawn, the latest first."""
        return latest_first(self._current())

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share is over."""
        return max(0.0, share.expires - self._clock())

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Make a share, and the code for its link; raises TooManyShares and OSError."""
        share, code = draft_share(int(self._clock()), life_s, agent, session, title)
        async with self._changing:
            kept = {each.id: each for each in self._current()}
            if len(kept) >= MAX_SHARES:
                raise TooManyShares
            await self._write({**kept, share.id: share})
        return share, code

    async def redeem(self, code: str) -> Share | None:
        """Return the share of a code, and use the code up; None if it is unknown, used or too old. Raises OSError."""
        hashed = hash_code(code).hex()
        async with self._changing:
            share = next((each for each in self._current() if each.unused == hashed), None)
            if share is None or self._clock() >= share.created + LINK_LIFE_S:
                return None
            used = msgspec.structs.replace(share, unused=None)
            await self._write({**self._shares, share.id: used})
            return used

    async def withdraw(self, share_id: str) -> bool:
        """End a share; tells whether there was one. Raises OSError, and the share is back after a restart then."""
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
    """Return a share that begins now, and the code for its link."""
    code = make_code()
    expires = now + int(min(life_s, MAX_LIFE_S))
    return Share(secrets.token_urlsafe(_ID_BYTES), now, expires, agent, session, title, hash_code(code).hex()), code


def latest_first(shares: Iterable[Share]) -> list[Share]:
    """Return shares in the order of a list."""
    return sorted(shares, key=lambda share: share.created, reverse=True)


def _read(path: Path) -> dict[str, Share]:
    try:
        return {share.id: share for share in msgspec.json.decode(path.read_bytes(), type=list[Share])}
    except FileNotFoundError:
        return {}
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        aside = keep_aside(path)
        path.unlink()
        _log.warning("%s cannot be read (%s) and is kept as %s: there are no shares now", path, error, aside)
        return {}
