"""Copying sessions from one store into another. Each is copied completely or not at all, and compared afterwards.

Sessions that were copied before are recognised, so a move that was cut short can be repeated. Nothing is deleted.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol
from zlib import crc32

import msgspec

from dragoman.errors import DragomanError
from dragoman.store.block import Block, Header
from dragoman.store.store import Store, Summary


class MoveTarget(Store, Protocol):
    """A store that sessions can be moved into."""

    async def put(self, header: Header, blocks: AsyncIterator[list[Block]], listed: Summary | None) -> bool:
        """Add a session, completely or not at all. Return whether its id was free."""
        ...


class MoveResult(msgspec.Struct):
    """The number of sessions that were moved, and the problems."""

    moved: int = 0
    known: int = 0
    """Sessions that the target already had, with equal lines."""
    problems: list[str] = []
    """Sessions that were not moved, each with the reason."""


async def move_sessions(
    source: Store, target: MoveTarget, report: Callable[[MoveResult], Awaitable[None]]
) -> MoveResult:
    """Copy all listed sessions. `report` is called after each."""
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
            await report(result)
        cursor = page.next_cursor
        if cursor is None:
            return result


async def _move(source: Store, target: MoveTarget, listed: Summary) -> bool:
    """Copy a session, and return whether it is new in the target. Raises MoveError, SessionBusyError, LogError."""
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
        raise MoveError(
            "it already exists there with different content, because one copy was "
            "continued; delete the copy you do not need"
        )
    return is_new


async def sum_blocks(blocks: AsyncIterator[list[Block]]) -> tuple[int, int]:
    """Return the number of the last line, and a checksum of all lines."""
    last = checksum = 0
    async for some in blocks:
        for block in some:
            last, checksum = block.last, crc32(block.lines, checksum)
    return last, checksum


class MoveError(DragomanError):
    """A session could not be moved."""
