"""What lets people in, the same on every node that shares a database: shares, and the codes of links.

The guard asks for a share with every request of a reader, and is answered from memory. All shares are read again once a
second, and at once when a node makes or withdraws one, which wakes all nodes. A share that is not known here, though
its cookie is good, is looked up before the reader is refused.

A node that does not reach the database cannot know of a withdrawal. It lets readers in until two thirds of a lease have
passed since it last read the shares; then it refuses them, and ends their connections, until it has read them again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dragoman.bridge.guard import AccessUnavailable, CredentialStores, Share, TooManyShares
from dragoman.bridge.guard.credentials import CODE_LIFE_S, MAX_CODES, hash_code, make_code
from dragoman.bridge.guard.shares import LINK_LIFE_S, MAX_SHARES, OVER, WITHDRAWN, draft_share, latest_first
from dragoman.bridge.nodes.code_directory import CodeDirectory, Lookups, SendToNode, without_details
from dragoman.errors import DragomanError, LogFailed
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.code_table import CodeTable
from dragoman.store.postgresql.message_table import SHARES_CHANGED
from dragoman.store.postgresql.node import OWN_PART, Node
from dragoman.store.postgresql.share_table import ShareRow, ShareTable

READ_S = 1.0
"""Between two readings of the shares by a node that nobody wakes; less with a short lease."""

_READINGS = 5
"""Readings within a lease, at least: one may fail without a reader being refused."""

MAX_GONE = 1_000
"""Ids of shares that are remembered as over: a browser that keeps asking with an old cookie costs no statement."""

UNSURE = "the bridge cannot reach its database, so that it is not known whether this link still holds; try again soon"

_OWNER_CODES = "owner"

_log = logging.getLogger("dragoman.bridge")


class DatabaseShares:
    """The shares of all nodes with the same token: `guard.ShareStore`."""

    def __init__(self, table: ShareTable, node: Node, lookups: Lookups) -> None:
        self.on_ended: Callable[[str, str], None] | None = None
        self._table = table
        self._node = node
        self._lookups = lookups
        self._shares: dict[str, Share] = {}
        self._gone: dict[str, None] = {}
        self._changes = 0
        """Of `_shares`: a reading that began before one is out of date."""
        self._reading = asyncio.Lock()
        self._tried_at = self._read_at = float("-inf")
        """When the last reading began, and the last one that succeeded."""
        self._timer: asyncio.TimerHandle | None = None

    def find(self, share_id: str) -> Share | None:
        """Return a share that is neither over nor withdrawn; raises AccessUnavailable if that is not known here."""
        share = self._shares.get(share_id)
        is_known = share is not None or share_id in self._gone
        if not is_known or time.monotonic() - self._read_at > self._max_age_s:
            raise AccessUnavailable(UNSURE)
        return share if share is not None and self.left_s(share) else None

    async def look_up(self, share_id: str) -> None:
        """Find out about a share that another node may just have made."""
        asked_at = time.monotonic()
        async with self._reading:
            if self._tried_at < asked_at:  # else somebody who waited here before has read it meanwhile
                try:
                    await self._read()
                except DragomanError:
                    return  # `find` says that it is not known
        if self._read_at >= asked_at and share_id not in self._shares:
            self._forget(share_id)

    async def refresh(self) -> None:
        """Read all shares, and end the readers of those that are gone; raises LogFailed."""
        async with self._reading:
            await self._read()

    async def list(self) -> "list[Share]":
        """Return all shares that are neither over nor withdrawn, the latest first; raises AccessUnavailable."""
        with without_details():
            await self.refresh()
        return latest_first(self._shares.values())

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share is over, by the clock of the database."""
        return max(0.0, share.expires - self._node.now_ms() / 1000)

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Make a share, and the code for its link; raises TooManyShares, AccessUnavailable."""
        draft, code = draft_share(self._node.now_ms() // 1000, life_s, agent, session, title)
        row = ShareRow(draft.id, draft.created, draft.expires, agent, session, title, hash_code(code))
        with without_details():
            made = await self._table.make(row, draft.expires - draft.created, MAX_SHARES)
        if made is None:
            raise TooManyShares
        return self._keep(made), code

    async def redeem(self, code: str) -> Share | None:
        """Return the share of a code, and use the code up, on all nodes; None if it is unknown, used or too old.

        Raises AccessUnavailable.
        """
        async with self._lookups.slot():
            found = await self._table.redeem(hash_code(code), LINK_LIFE_S)
        return None if found is None else self._keep(found)

    async def withdraw(self, share_id: str) -> bool:
        """End a share on all nodes; tells whether there was one. Raises AccessUnavailable."""
        with without_details():
            is_there = await self._table.withdraw(share_id)
        self._changes += 1
        self._shares.pop(share_id, None)
        self._forget(share_id)
        self._end(share_id, WITHDRAWN)
        return is_there

    def close(self) -> None:
        """Watch the age of the shares no longer."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _max_age_s(self) -> float:
        return self._node.lease_s * OWN_PART

    async def _read(self) -> None:
        while True:
            changes, self._tried_at = self._changes, time.monotonic()
            rows = await self._table.read()
            if changes == self._changes:  # else it may lack a share that was made here meanwhile
                break
        before, self._shares = self._shares, {row.id: _share_of(row) for row in rows}
        self._note_read()
        for share in [share for share in before.values() if share.id not in self._shares]:
            self._forget(share.id)
            self._end(share.id, WITHDRAWN if self.left_s(share) else OVER)

    def _note_read(self) -> None:
        self._read_at = self._tried_at
        self.close()
        left_s = self._read_at + self._max_age_s - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(left_s, self._end_all)

    def _end_all(self) -> None:
        """End all readers: nobody knows any more whether their shares still hold."""
        for share_id in list(self._shares):
            self._end(share_id, UNSURE)

    def _end(self, share_id: str, reason: str) -> None:
        if self.on_ended is not None:
            self.on_ended(share_id, reason)

    def _keep(self, row: ShareRow) -> Share:
        self._changes += 1
        share = self._shares[row.id] = _share_of(row)
        return share

    def _forget(self, share_id: str) -> None:
        self._gone[share_id] = None
        if len(self._gone) > MAX_GONE:
            del self._gone[next(iter(self._gone))]


def _share_of(row: ShareRow) -> Share:
    unused = None if row.code is None else row.code.hex()
    return Share(row.id, row.created, row.expires, row.agent, row.session, row.title, unused)


class DatabaseLinkCodes:
    """The codes of links of all nodes with the same token: `guard.LinkCodeStore`."""

    def __init__(self, table: CodeTable, realm: str, lookups: Lookups) -> None:
        self._table = table
        self._realm = realm
        self._lookups = lookups

    async def make(self) -> str:
        """Return a code that lets one browser in, once, at any node; raises AccessUnavailable."""
        code = make_code()
        with without_details():
            await self._table.put(hash_code(code), self._realm, life_s=CODE_LIFE_S, limit=MAX_CODES)
        return code

    async def redeem(self, code: str) -> bool:
        """Use a code up, on all nodes; tells whether it was good. Raises AccessUnavailable."""
        async with self._lookups.slot():
            return await self._table.use(hash_code(code), self._realm)


class NodeAccess:
    """The part of a node that lets people in."""

    def __init__(self, database: Database, node: Node, send: SendToNode) -> None:
        self._lookups = Lookups()
        self.codes = CodeDirectory(database, node.id, send, self._lookups)
        self._database = database
        self._node = node
        self._shares: dict[str, DatabaseShares] = {}
        """By the realm, which is one for each token."""
        self._changed = asyncio.Event()

    def stores(self, realm: str) -> CredentialStores:
        """Return the shares and codes of the nodes of a realm."""
        shares = self._shares.get(realm)
        if shares is None:
            shares = self._shares[realm] = DatabaseShares(ShareTable(self._database, realm), self._node, self._lookups)
        codes = DatabaseLinkCodes(CodeTable(self._database, _OWNER_CODES), realm, self._lookups)
        return CredentialStores(shares, codes, lambda: self._node.now_ms() / 1000)

    def note_wake(self, payload: str) -> None:
        """Note why this node was woken."""
        if payload == SHARES_CHANGED:
            self._changed.set()

    async def watch(self) -> None:
        """Read the shares again and again, until it is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(READ_S, self._node.lease_s / _READINGS)):
                    await self._changed.wait()
            self._changed.clear()
            try:
                for shares in list(self._shares.values()):
                    await shares.refresh()
            except LogFailed as error:
                _log.debug("the shares cannot be read: %s", error)

    async def sweep(self) -> None:
        """Remove what is over, whoever made it; raises LogFailed."""
        await ShareTable(self._database, "").sweep()
        await CodeTable(self._database, _OWNER_CODES).sweep()

    def close(self) -> None:
        """Stop watching."""
        for shares in self._shares.values():
            shares.close()
