"""Moving sessions from one store into another: each whole or not at all, compared line by line afterwards.

What was moved before is known again, so that a move which was cut short is begun anew and goes on. Nothing is deleted.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol
from zlib import crc32

import msgspec

from dragoman.errors import DragomanError
from dragoman.store.block import Block, Header
from dragoman.store.store import Store, Summary


class TakesSessions(Store, Protocol):
    """A store that sessions can be moved into."""

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Take a session over, all or nothing; tells whether its id was free."""
        ...


class MoveResult(msgspec.Struct):
    """What became of the sessions of a store."""

    moved: int = 0
    known: int = 0
    """Those that were there already, line by line."""
    problems: list[str] = []
    """Sessions that were not moved, each with the reason."""


async def move_sessions(
    source: Store, target: TakesSessions, tell: Callable[[MoveResult], Awaitable[None]]
) -> MoveResult:
    """Copy all sessions that lists show; `tell` is called after each."""
    result, cursor = MoveResult(), None
    while True:
        page = await source.page(None, cursor, archived="include")
        for listed in page.sessions:
            try:
                is_new = await _move(source, target, listed)
            except DragomanError as error:
                result.problems.append(f"{listed.id}: {error}")
            else:
                result.moved += is_new
                result.known += not is_new
            await tell(result)
        cursor = page.next_cursor
        if cursor is None:
            return result


async def _move(source: Store, target: TakesSessions, listed: Summary) -> bool:
    """Copy a session, and tell whether it is new there; raises MoveFailed, SessionBusy, LogFailed."""
    log = await source.open(listed.id)
    try:
        is_new = await target.put(log.header, log.blocks(), listed)
        before = await sum_blocks(log.blocks())
    finally:
        await log.close()
    copy = await target.open(listed.id)
    try:
        after = await sum_blocks(copy.blocks())
    finally:
        await copy.close()
    if before != after:
        raise MoveFailed(
            "it is there with other lines, because it went on at one of the two places; delete the one that you do "
            "not need"
        )
    return is_new


async def sum_blocks(blocks: AsyncIterator[list[Block]]) -> tuple[int, int]:
    """Return the number of the last line, and a sum of all lines."""
    last = checksum = 0
    async for some in blocks:
        for block in some:
            last, checksum = block.last, crc32(block.lines, checksum)
    return last, checksum


class MoveFailed(DragomanError):
    """A session could not be moved."""
