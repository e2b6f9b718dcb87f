"""Shares and sign-in codes of links, in the database that several nodes share.

The guard checks a share with every request of a reader, and the answer comes from memory. Each node reads all shares
once per second. It reads them at once when a node creates or withdraws a share, because that wakes all nodes. If a
cookie is valid but its share is unknown here, the node reads the database before it refuses the reader.

A node that cannot reach the database cannot see a withdrawal. It admits readers until two thirds of a lease have passed
since it last read the shares. Then it refuses them and ends their connections until it has read the shares again.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress

from dragoman.bridge.guard import AccessUnavailableError, CredentialStores, Share, TooManySharesError
from dragoman.bridge.guard.credentials import CODE_LIFE_S, MAX_CODES, hash_code, make_code
from dragoman.bridge.guard.shares import LINK_LIFE_S, MAX_SHARES, OVER, WITHDRAWN, draft_share, latest_first
from dragoman.bridge.nodes.code_directory import CodeDirectory, Lookups, SendToNode, without_details
from dragoman.errors import DragomanError, LogError
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.code_table import CodeTable
from dragoman.store.postgresql.message_table import SHARES_CHANGED
from dragoman.store.postgresql.node import OWN_PART, Node
from dragoman.store.postgresql.share_table import ShareRow, ShareTable

READ_S = 1.0
"""Pause between two reads of the shares if nothing wakes the node. A short lease shortens it."""

_READINGS = 5
"""Minimum number of reads per lease, so that one read can fail without a reader being refused."""

MAX_GONE = 1_000
"""Number of ended shares that are remembered, so that a browser with an old cookie causes no database query."""

UNSURE = "the bridge cannot reach its database, so it cannot check whether this link is still valid; try again soon"

_OWNER_CODES = "owner"

_log = logging.getLogger("dragoman.bridge")


class DatabaseShares:
    """The shares of all nodes with the same token. Implements `guard.ShareStore`."""

    def __init__(self, table: ShareTable, node: Node, lookups: Lookups) -> None:
        self.on_ended: Callable[[str, str], None] | None = None
        self._table = table
        self._node = node
        self._lookups = lookups
        self._shares: dict[str, Share] = {}
        self._gone: dict[str, None] = {}
        self._changes = 0
        """Counts local changes of `_shares`. A read that began before the latest one is out of date."""
        self._reading = asyncio.Lock()
        self._tried_at = self._read_at = float("-inf")
        """When the last read began, and when the last successful read began."""
        self._timer: asyncio.TimerHandle | None = None

    def find(self, share_id: str) -> Share | None:
        """Return a share that is neither expired nor withdrawn.

        Raises AccessUnavailableError if this node cannot know that.
        """
        share = self._shares.get(share_id)
        is_known = share is not None or share_id in self._gone
        if not is_known or time.monotonic() - self._read_at > self._max_age_s:
            raise AccessUnavailableError(UNSURE)
        return share if share is not None and self.left_s(share) else None

    async def look_up(self, share_id: str) -> None:
        """Read the shares again, because another node may just have created this one."""
        asked_at = time.monotonic()
        async with self._reading:
            if self._tried_at < asked_at:  # otherwise the previous holder of the lock has just read the shares
                try:
                    await self._read()
                except DragomanError:
                    return  # `find` raises AccessUnavailableError
        if self._read_at >= asked_at and share_id not in self._shares:
            self._forget(share_id)

    async def refresh(self) -> None:
        """Read all shares, and end the readers of shares that no longer exist. Raises LogError."""
        async with self._reading:
            await self._read()

    async def list(self) -> "list[Share]":
        """Return all valid shares, latest first. Raises AccessUnavailableError."""
        with without_details():
            await self.refresh()
        return latest_first(self._shares.values())

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share expires, by the clock of the database."""
        return max(0.0, share.expires - self._node.now_ms() / 1000)

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Create a share and the code for its link. Raises TooManySharesError, AccessUnavailableError."""
        draft, code = draft_share(self._node.now_ms() // 1000, life_s, agent, session, title)
        row = ShareRow(draft.id, draft.created, draft.expires, agent, session, title, hash_code(code))
        with without_details():
            made = await self._table.make(row, draft.expires - draft.created, MAX_SHARES)
        if made is None:
            raise TooManySharesError
        return self._keep(made), code

    async def redeem(self, code: str) -> Share | None:
        """Return the share of a code, and invalidate the code on all nodes.

        Return None if the code is unknown, used or too old. Raises AccessUnavailableError.
        """
        async with self._lookups.slot():
            found = await self._table.redeem(hash_code(code), LINK_LIFE_S)
        return None if found is None else self._keep(found)

    async def withdraw(self, share_id: str) -> bool:
        """End a share on all nodes. Return whether it existed. Raises AccessUnavailableError."""
        with without_details():
            is_there = await self._table.withdraw(share_id)
        self._changes += 1
        self._shares.pop(share_id, None)
        self._forget(share_id)
        self._end(share_id, WITHDRAWN)
        return is_there

    def close(self) -> None:
        """Stop the timer that ends readers when the shares are too old."""
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _max_age_s(self) -> float:
        return self._node.lease_s * OWN_PART

    async def _read(self) -> None:
        while True:
            changes, self._tried_at = self._changes, time.monotonic()
            rows = await self._table.read()
            if changes == self._changes:  # otherwise the rows may lack a share that was created here during the read
                break
        before, self._shares = self._shares, {row.id: _share_of(row) for row in rows}
        self._record_read()
        for share in [share for share in before.values() if share.id not in self._shares]:
            self._forget(share.id)
            self._end(share.id, WITHDRAWN if self.left_s(share) else OVER)

    def _record_read(self) -> None:
        self._read_at = self._tried_at
        self.close()
        left_s = self._read_at + self._max_age_s - time.monotonic()
        self._timer = asyncio.get_running_loop().call_later(left_s, self._end_all)

    def _end_all(self) -> None:
        """End all readers, because this node cannot know whether their shares are still valid."""
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
    """The sign-in codes of all nodes with the same token. Implements `guard.LinkCodeStore`."""

    def __init__(self, table: CodeTable, realm: str, lookups: Lookups) -> None:
        self._table = table
        self._realm = realm
        self._lookups = lookups

    async def make(self) -> str:
        """Return a code with which one browser can sign in once, at any node. Raises AccessUnavailableError."""
        code = make_code()
        with without_details():
            await self._table.put(hash_code(code), self._realm, life_s=CODE_LIFE_S, limit=MAX_CODES)
        return code

    async def redeem(self, code: str) -> bool:
        """Invalidate a code on all nodes. Return whether it was valid. Raises AccessUnavailableError."""
        async with self._lookups.slot():
            return await self._table.use(hash_code(code), self._realm)


class NodeAccess:
    """The shares and codes of one node."""

    def __init__(self, database: Database, node: Node, send: SendToNode) -> None:
        self._lookups = Lookups()
        self.codes = CodeDirectory(database, node.id, send, self._lookups)
        self._database = database
        self._node = node
        self._shares: dict[str, DatabaseShares] = {}
        """The shares of each realm. There is one realm per token."""
        self._changed = asyncio.Event()

    def stores(self, realm: str) -> CredentialStores:
        """Return the shares and codes of the nodes of a realm."""
        shares = self._shares.get(realm)
        if shares is None:
            shares = self._shares[realm] = DatabaseShares(ShareTable(self._database, realm), self._node, self._lookups)
        codes = DatabaseLinkCodes(CodeTable(self._database, _OWNER_CODES), realm, self._lookups)
        return CredentialStores(shares, codes, lambda: self._node.now_ms() / 1000)

    def handle_wake(self, payload: str) -> None:
        """Read the shares soon if a change of them woke this node."""
        if payload == SHARES_CHANGED:
            self._changed.set()

    async def watch(self) -> None:
        """Read the shares regularly, until the task is cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(min(READ_S, self._node.lease_s / _READINGS)):
                    await self._changed.wait()
            self._changed.clear()
            try:
                for shares in list(self._shares.values()):
                    await shares.refresh()
            except LogError as error:
                _log.debug("the read-only links cannot be read: %s", error)

    async def sweep(self) -> None:
        """Remove the expired shares and codes of all nodes. Raises LogError."""
        await ShareTable(self._database, "").sweep()
        await CodeTable(self._database, _OWNER_CODES).sweep()

    def close(self) -> None:
        """Stop the timers of all shares."""
        for shares in self._shares.values():
            shares.close()
