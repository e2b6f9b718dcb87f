"""The promises of a history, in a file as bridges use it and in a database."""

import errno
import os

import pytest

from dragoman.errors import LogError
from dragoman.store.block_log import BlockReader, read_head
from dragoman.store.disk import READ, Disk
from dragoman.store.history import (
    AfterFailure,
    Cursor,
    History,
    HistoryState,
    encode_settings,
    make_header,
    read_cursor,
)
from dragoman.store.history_file import FileOptions, HistoryFile
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.history import DatabaseHistory
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.session_table import READ_BYTES, SessionTable
from dragoman.store.runs import TailBudget

OPTIONS = FileOptions(seal_ms=0, waits_for_space=True, renews_header=True)
BUDGET = TailBudget(1 << 20, 1 << 20)


def line(text):
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":"%b"}}\n' % text


class FullDisk(Disk):
    """A disk that refuses writes when it is full."""

    error = 0

    def write(self, fd, data):
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return super().write(fd, data)


class Files:
    """Histories in files."""

    def __init__(self, directory):
        self.disk = FullDisk()
        self.path = directory / "history.jsonl"

    async def create(self, budget=BUDGET):
        header = make_header("s", "/work", [])
        file = HistoryFile.begin(self.disk, self.path, header, OPTIONS)
        history = History(header, file, budget=budget, after_failure=AfterFailure.SHOW)
        file.create()
        return history

    async def reopen(self):
        fd = os.open(self.path, READ)
        head = read_head(fd, self.path)
        os.close(fd)
        file = HistoryFile(self.disk, self.path, head.start, options=OPTIONS)
        state, after_failure = HistoryState.UNREAD, AfterFailure.SHOW
        return History(head.header, file, state=state, budget=BUDGET, after_failure=after_failure)


class Rows:
    """Histories in a database."""

    def __init__(self, address):
        self.database = Database(address)
        self.table = SessionTable(self.database, "agent")
        self.node = Node(self.database)

    async def create(self, budget=BUDGET):
        await self.node.ensure()
        session = await self.table.create(make_header("s", "/work", []), self.node.id)
        rows = DatabaseHistory(self.table, self.node, session)
        return History(session.header, rows, budget=budget)

    async def reopen(self):
        session = await self.table.acquire("s", self.node.id)
        rows = DatabaseHistory(self.table, self.node, session)
        return History(session.header, rows, state=HistoryState.UNREAD, end=session.end.last, budget=BUDGET)

    async def close(self):
        await self.node.leave()
        await self.database.close()


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


async def flush(history):
    if (written := history.flush()) is not None:
        await written


async def read_lines(history):
    return [
        text
        for blocks in [each async for each in history.blocks()]
        for block in blocks
        for text in block.lines.splitlines(keepends=True)
    ]


async def read_shown(history, after=0):
    reached, shown = after, []
    while reached < history.end:
        part = await history.read(reached, history.end)
        shown += [(seq, text) for run in part.runs for seq, text in enumerate(run.messages(), run.first)]
        reached = part.reached
    return shown


class HistoryContract:
    async def test_flushed_lines_can_be_read_after_any_line(self, place):
        history = await place.create()
        for number in range(1, 6):
            history.append(line(b"%d" % number))
            history.record("turn", b"{}")
            assert history.next_end == 2 * number
            await flush(history)
            assert history.end == 2 * number
        messages = [(2 * number - 1, line(b"%d" % number)[:-1]) for number in range(1, 6)]
        runs, _, reached = history.tail.slice(0, history.end, 1 << 20)
        assert [(run.first, run.lines[:-1]) for run in runs] == messages
        assert reached == history.end
        for after in range(history.end):
            assert await read_shown(history, after) == [each for each in messages if each[0] > after]

    async def test_lines_are_not_shown_before_a_flush(self, place):
        history = await place.create()
        history.append(line(b"1"))
        assert (history.end, history.next_end) == (0, 1)
        await flush(history)
        assert (history.end, history.next_end) == (1, 1)

    async def test_a_reopened_history_continues(self, place):
        history = await place.create()
        history.append(line(b"1"))
        history.set_version(2)
        history.append(line(b"2"))
        await history.sync()
        epoch, cursor = history.epoch, read_cursor(history.cursor(history.end))
        await history.close()
        again = await place.reopen()
        assert await read_lines(again) == [line(b"1"), b'{"config":%b}\n' % encode_settings({}, 2), line(b"2")]
        assert (again.end, again.epoch, again.has(cursor)) == (3, epoch, True)
        assert [again.version_at(seq) for seq in (1, 3)] == [1, 2]
        assert not again.is_all_in(1)
        again.append(line(b"3"))
        await flush(again)
        assert (await read_shown(again))[-1] == (4, line(b"3")[:-1])
        assert again.tail.start == 3

    async def test_lines_after_a_very_long_one_are_read(self, place):
        history = await place.create()
        long = line(b"x" * 2 * READ_BYTES)
        for lines in (long, line(b"2"), long, line(b"4")):
            history.append(lines)
            await flush(history)
        assert [text for _, text in await read_shown(history)] == [
            each[:-1] for each in (long, line(b"2"), long, line(b"4"))
        ]

    async def test_many_lines_at_once_become_several_blocks(self, place):
        history = await place.create()
        lines = [line(b"%d" % number + b"x" * 1000) for number in range(1000)]
        history.append(b"".join(lines))
        await flush(history)
        assert await read_lines(history) == lines
        assert 3 < len([block async for blocks in history.blocks() for block in blocks]) < 100


def test_cursors_are_read_strictly():
    assert read_cursor("epoch.3") == Cursor("epoch", 3)
    assert read_cursor("epoch.3.4") == Cursor("epoch", 3, 4)
    for wrong in (None, "", "epoch", "epoch.x", "epoch.-1", "epoch.1.2.3", "epoch." + "9" * 19, "epoch.\u0663"):
        assert read_cursor(wrong) is None


class TestFiles(HistoryContract):
    @pytest.fixture
    def place(self, files):
        return files

    async def test_cursors_have_an_interim_epoch_on_a_full_disk(self, files):
        history = await files.create(TailBudget(0, 0))
        history.append(line(b"1"))
        history.flush()
        before = read_cursor(history.cursor(1))
        files.disk.error = errno.ENOSPC
        for number in range(2, 5):
            history.append(line(b"%d" % number))
            history.flush()
        assert history.is_waiting
        assert not history.recover()
        assert history.end == 4, "a turn that runs goes on"
        interim = read_cursor(history.cursor(4))
        assert interim.epoch != before.epoch
        assert history.has(before)
        assert history.tail.start <= 1, "what is nowhere else is kept"
        files.disk.error = 0
        assert history.recover()
        assert history.failure is None
        assert history.has(interim), "it holds until the bridge ends"
        assert history.epoch == before.epoch
        assert await read_lines(await files.reopen()) == [line(b"%d" % number) for number in range(1, 5)]

    async def test_a_bridge_continues_in_memory_after_another_error(self, files):
        history = await files.create()
        cursor = read_cursor(history.cursor(0))
        files.disk.error = errno.EIO
        history.append(line(b"1"))
        history.flush()
        assert history.is_lost
        assert not history.has(cursor)
        history.append(line(b"2"))
        history.flush()
        runs, _, _ = history.tail.slice(0, 2, 1 << 20)
        assert b"".join(run.lines for run in runs) == line(b"1") + line(b"2")
        assert history.end == 2

    async def test_an_agent_cannot_append_after_a_failed_write(self, files):
        history = await files.create()
        refusing = History(history.header, history.backend)
        files.disk.error = errno.ENOSPC
        refusing.backend = HistoryFile(files.disk, files.path, history.backend.start, end=history.backend.start)
        refusing.backend.history = refusing
        refusing.append(line(b"1"))
        with pytest.raises(LogError, match="No space left"):
            refusing.flush()
        assert refusing.end == 0
        with pytest.raises(LogError):
            refusing.append(line(b"2"))

    async def test_a_history_with_lost_lines_gets_a_new_epoch(self, files):
        history = await files.create()
        for number in range(3):
            history.append(line(b"%d" % number))
            history.flush()
        cursor = read_cursor(history.cursor(1))
        data = files.path.read_bytes()
        files.path.write_bytes(data[:-5])
        again = await files.reopen()
        assert await read_lines(again) == [line(b"%d" % number) for number in range(3)]
        assert not again.has(cursor)
        third = await files.reopen()
        assert third.epoch == again.epoch
        assert await read_lines(third) == await read_lines(again)

    async def test_an_idle_file_is_closed(self, files):
        before = len(os.listdir("/proc/self/fd"))
        history = await files.create()
        assert len(os.listdir("/proc/self/fd")) == before
        history.append(line(b"1"))
        await history.sync()
        assert len(os.listdir("/proc/self/fd")) == before
        fd = os.open(files.path, READ)
        reader = BlockReader(files.disk, files.path, read_head(fd, files.path).start)
        os.close(fd)
        assert [block.lines for block in reader.read()] == [line(b"1")]
        reader.close()


class TestDatabase(HistoryContract):
    @pytest.fixture
    async def place(self, address):
        place = Rows(address)
        yield place
        await place.close()

    async def test_flushes_during_a_commit_become_one_block(self, place):
        history = await place.create()
        for number in range(50):
            history.append(line(b"%d" % number))
            history.flush()
        assert history.end == 0, "nothing is shown before it is committed"
        await history.sync()
        assert history.end == 50
        assert [block.last async for blocks in history.blocks() for block in blocks] in ([50], [1, 50])

    async def test_a_lost_history_drops_uncommitted_lines(self, place):
        history = await place.create()
        history.append(line(b"1"))
        await history.flush()
        history.append(line(b"2"))
        written = history.flush()
        history.backend.lose(LogError("another node has it"))
        with pytest.raises(LogError, match="another node"):
            await written
        assert (history.end, history.next_end) == (1, 1)
        with pytest.raises(LogError):
            history.append(line(b"3"))
