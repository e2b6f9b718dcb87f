"""The writer of one session's blocks: lines are committed behind, in batches that are as long as a commit takes."""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeAlias

import msgspec

from dragoman.cancellation import finish
from dragoman.errors import LogFailed
from dragoman.store.block import Draft
from dragoman.store.postgresql.errors import DatabaseUnavailable, TooMuchWaits
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import ListedFacts, OwnedSession, SealedBlocks, SessionEnd, SessionTable

MAX_WAITING_BYTES = 16 * 1024 * 1024
"""Kept in memory for a database that is away: more than a turn says in the time of a lease."""

BLOCK_BYTES = 64 * 1024
"""Lines of a block: it is read whole."""

_RETRY_S = 0.2

Written: TypeAlias = asyncio.Future[None]
"""Done when lines are committed; its error is the reason why they are not."""


class SessionWrites:
    """The writes to a session of this process, each tried until the lease ends, or for as long as one lasts.

    A full disk takes no blocks, but heartbeats: the lease of this process then never ends.
    """

    def __init__(self, table: SessionTable, session: OwnedSession, node: Node) -> None:
        self.table = table
        self.session = session
        self.now_ms = node.now_ms
        self._node = node

    async def append(self, before: SessionEnd, new: SealedBlocks, facts: ListedFacts | None) -> None:
        """Add blocks, and the facts if they changed; raises LogFailed."""
        await self._try(lambda: self.table.append(self.session, before, new, facts))

    async def set_facts(self, facts: ListedFacts) -> None:
        """Set what lists show; raises LogFailed."""
        await self._try(lambda: self.table.set_facts(self.session, facts))

    async def _try(self, work: Callable[[], Awaitable[None]]) -> None:
        give_up_at = time.monotonic() + self._node.lease_s
        while True:
            try:
                async with asyncio.timeout(self._node.left_s):
                    return await work()
            except TimeoutError:
                failure = self._node.lost()
            except DatabaseUnavailable as error:
                failure = error
            if not self._node.is_alive:
                raise self._node.lost() from None
            if time.monotonic() > give_up_at:
                raise failure
            await asyncio.sleep(_RETRY_S)


class BlockWriter:
    """Lines that are appended, and their way into the database."""

    def __init__(self, writes: SessionWrites, on_failure: Callable[[LogFailed], None]) -> None:
        self.facts = writes.session.facts
        """Those that lists are to show."""
        self.end = writes.session.end
        """The end of what is committed."""
        self._told = msgspec.structs.replace(self.facts)
        """The facts that lists show now."""
        self._is_listed = True
        """Whether lists show the time of the last write too."""
        self._writes = writes
        self._on_failure = on_failure
        self._unwritten = deque([Draft()])
        """Blocks that are on no way yet; the last one is added to."""
        self._sent_end = self.end
        """The end of what is committed or under way."""
        self._task: asyncio.Task[None] | None = None
        self._next: Written | None = None
        """Done when the unwritten blocks are committed."""
        self._current: Written | None = None
        """Done when the commit that is under way is."""

    def draft(self) -> Draft:
        """Return the block that is added to: a full one is followed by another. Raises TooMuchWaits."""
        if self._unwritten[-1].size >= BLOCK_BYTES:
            if sum(draft.size for draft in self._unwritten) > MAX_WAITING_BYTES:
                failure = TooMuchWaits(self._writes.table.database.name, MAX_WAITING_BYTES)
                self._on_failure(failure)
                raise failure
            self._unwritten.append(Draft())
        return self._unwritten[-1]

    def cut(self) -> int:
        """End a block here, and return the number of the last line."""
        if self._unwritten[-1]:
            self._unwritten.append(Draft())
        return self._sent_end.last + sum(map(len, self._unwritten))

    def write(self) -> Written | None:
        """Have all lines committed; None if they are."""
        if not self._unwritten[0]:
            return self._current
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
            self._next.add_done_callback(_see)
        if self._task is None:
            self._task = asyncio.create_task(self._write_all())
        return self._next

    async def list(self) -> None:
        """Have lists show the facts and the time of the last write; raises LogFailed."""
        if self._is_listed and self.facts == self._told:
            return
        told = msgspec.structs.replace(self.facts)
        try:
            await finish(self._writes.set_facts(told))
        except LogFailed as failure:
            self._on_failure(failure)
            raise
        self._told, self._is_listed = told, True

    def stop(self, failure: LogFailed) -> None:
        """Forget what is not committed."""
        self._unwritten = deque([Draft()])
        for written in (self._current, self._next):
            if written is not None and not written.done():
                written.set_exception(failure)
        self._current = self._next = None

    async def _write_all(self) -> None:
        """Commit all that is appended, also meanwhile."""
        try:
            while self._unwritten[0]:
                await self._write_batch()
        except LogFailed as failure:
            self._on_failure(failure)
        except Exception as error:
            self._on_failure(LogFailed(f"the session cannot be written ({error}); please report this"))
            raise
        finally:
            self._task = None

    async def _write_batch(self) -> None:
        drafts, self._unwritten = self._unwritten, deque([Draft()])
        self._current, self._next = self._next, None
        new = seal_drafts(drafts, self.end, self._writes.now_ms())
        facts = None if self.facts == self._told else msgspec.structs.replace(self.facts)
        self._sent_end = new.end
        await self._writes.append(self.end, new, facts)
        self.end, self._is_listed = new.end, facts is not None
        self._told = facts or self._told
        written, self._current = self._current, None
        if written is not None:
            written.set_result(None)


def seal_drafts(drafts: Iterable[Draft], end: SessionEnd, time_ms: int) -> SealedBlocks:
    """Seal blocks that follow on an end, with the time of the database."""
    new = SealedBlocks([], [], [], end)
    for draft in drafts:
        if draft:
            first = new.end.last + 1
            block, checksum = draft.seal(first, time_ms, new.end.checksum)
            new.add(first, first + len(draft) - 1, block, checksum)
    return new


def _see(written: Written) -> None:
    """Look at an error, because nobody else may."""
    if not written.cancelled():
        written.exception()
