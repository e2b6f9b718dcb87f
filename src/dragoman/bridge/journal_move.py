"""`dragoman store move` for the journals and labels of bridges.

A journal is copied completely or not at all. Then both copies are compared.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from dragoman.bridge.bridge import lock_home
from dragoman.bridge.delivery import FileHistoryStore, StoredHistory, TailBudget
from dragoman.bridge.delivery.file_histories import read_head_of
from dragoman.bridge.sessions import NO_LABEL, SessionLabel, SessionLabels
from dragoman.errors import DragomanError, SessionNotFoundError
from dragoman.store.block import Block
from dragoman.store.block_log import BlockReader, write_blocks
from dragoman.store.disk import Disk
from dragoman.store.history import ListedFacts
from dragoman.store.move import MoveError, MoveResult, sum_blocks
from dragoman.store.opening import journal_scope
from dragoman.store.postgresql import Database, schema
from dragoman.store.postgresql.label_table import LabelTable
from dragoman.store.postgresql.session_table import SessionTable
from dragoman.store.postgresql.store import reseal_blocks

_DAMAGED = "it is damaged; start a bridge once with this home, which repairs it, then move again"
_OTHER = (
    "it already exists there with different content, because one copy was continued; delete the copy you do not need"
)
_SCOPES = "SELECT DISTINCT scope FROM dragoman_session WHERE scope LIKE %s"


class JournalMove:
    """The move of one agent's journals."""

    def __init__(self, database: Database, root: Path, agent: str) -> None:
        self._disk = Disk()
        self._files = FileHistoryStore(self._disk, root / "bridge" / agent, TailBudget(0, 0))
        self._table = SessionTable(database, journal_scope(agent))
        self._file_labels = SessionLabels(root / "bridge" / agent / "labels.json")
        self._labels = LabelTable(database, journal_scope(agent))

    async def run(self, result: MoveResult, *, to_files: bool) -> None:
        """Copy all journals, then the labels. Raises LogError, OSError."""
        await self._files.scan()
        ids = [found.header.id for found in await self._table.scan()] if to_files else list(self._files.stored)
        for session_id in ids:
            try:
                is_new = await (self._to_file(session_id) if to_files else self._to_database(session_id))
            except DragomanError as error:
                result.problems.append(f"{session_id}: {error}")
            else:
                result.moved += is_new
                result.known += not is_new
        await self._move_labels(to_files=to_files)

    async def _to_database(self, session_id: str) -> bool:
        stored = self._stored(session_id)
        facts = ListedFacts(stored.title, is_prompted=stored.prompted)
        head = await asyncio.to_thread(read_head_of, self._disk, self._files.path_of(session_id))
        blocks = reseal_blocks(self._of_file(session_id))
        is_new = await self._table.copy(head.header, blocks, facts, stored.updated_ms)
        await self._compare(session_id)
        return is_new

    async def _to_file(self, session_id: str) -> bool:
        key, end, _ = await self._table.find_end(session_id)
        is_new = session_id not in self._files.stored
        if is_new:
            header = await self._table.find(session_id)
            if header is None:
                raise SessionNotFoundError(session_id)
            path = self._files.path_of(session_id)
            fresh = path.with_suffix(".new")
            await write_blocks(self._disk, header, self._of_table(key, end.last), fresh)
            fresh.rename(path)
            self._disk.sync_directory(path.parent)
            await self._files.scan()
        await self._compare(session_id)
        return is_new

    def _stored(self, session_id: str) -> StoredHistory:
        """Return the facts of a journal in a file. Raises MoveError."""
        stored = self._files.stored.get(session_id)
        if stored is None:
            raise MoveError("its file cannot be read, or it was never prompted and is older than a week")
        return stored

    async def _compare(self, session_id: str) -> None:
        """Check that both copies of a journal are equal. Raises MoveError if they differ."""
        self._stored(session_id)
        key, end, _ = await self._table.find_end(session_id)
        if await sum_blocks(self._of_file(session_id)) != await sum_blocks(self._of_table(key, end.last)):
            raise MoveError(_OTHER)

    async def _of_file(self, session_id: str) -> AsyncIterator[list[Block]]:
        path = self._files.path_of(session_id)
        head = await asyncio.to_thread(read_head_of, self._disk, path)
        reader = BlockReader(self._disk, path, head.start)
        try:
            while blocks := await asyncio.to_thread(reader.read):
                yield blocks
            if reader.damage is not None or reader.unsealed is not None:
                raise MoveError(_DAMAGED)
        finally:
            reader.close()

    async def _of_table(self, key: int, until: int) -> AsyncIterator[list[Block]]:
        reached = 0
        while reached < until and (blocks := await self._table.read_from(key, reached, until)):
            reached = blocks[-1].last
            yield blocks

    async def _move_labels(self, *, to_files: bool) -> None:
        """Copy the labels of sessions that have none at the destination."""
        await self._file_labels.read()
        shared = await self._labels.read()
        if to_files:
            for session_id, label in shared.items():
                if self._file_labels.of(session_id) == NO_LABEL:
                    fields = msgspec.structs.asdict(msgspec.json.decode(label, type=SessionLabel))
                    await self._file_labels.change(session_id, **fields)
            return
        for session_id in self._file_labels.ids():
            if session_id not in shared:
                await self._labels.replace(session_id, None, msgspec.json.encode(self._file_labels.of(session_id)))


async def move_journals(address: str, root: Path, *, to_files: bool) -> MoveResult:
    """Copy the journals of all agents. No running bridge may use the home. Raises BridgeBusyError, LogError."""
    result, database = MoveResult(), Database(address)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(database.close)
        await schema.check(database)
        names = {path.name for path in (root / "bridge").glob("*/")}
        if to_files:
            prefix = journal_scope("")
            found = await database.fetch(_SCOPES, (f"{prefix}%",))
            names = {scope.removeprefix(prefix) for (scope,) in found}
        if names:
            lock = await asyncio.to_thread(lock_home, Disk(), root)
            stack.callback(lock.release)
        for name in sorted(names):
            part = MoveResult()
            await JournalMove(database, root, name).run(part, to_files=to_files)
            result.moved += part.moved
            result.known += part.known
            result.problems += [f"journal of {name}: {problem}" for problem in part.problems]
    return result
