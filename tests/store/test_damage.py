"""Logs that were cut, changed or shuffled. No sound record is lost, and no damaged bytes are read as a record."""

from pathlib import Path

import pytest

from dragoman.errors import SessionNotFoundError, SessionUnreadableError
from dragoman.store import FileStore
from dragoman.store.naming import log_path
from tests.store.making import QuickDisk, fork, make_log, new_header, read_all, reread, turn_end, update

WRITES = [
    [("update", b'{"n":1}'), ("update", b'"two"')],
    [("update", b"3")],
    [("turn", b'{"event":"start"}'), ("update", '{"n":"čtyři"}'.encode()), ("update", b"5"), ("turn", turn_end())],
]
SOME_OR_ALL = pytest.mark.parametrize(
    "step",
    [pytest.param(7, id="at every seventh byte"), pytest.param(1, id="at every byte", marks=pytest.mark.extended)],
)


class Specimen:
    """A small log made by hand, with its expected records."""

    def __init__(self, tmp_path):
        self.home = tmp_path / "home"
        self.store = FileStore(self.home, disk=QuickDisk())
        self.header = new_header()
        self.path = log_path(self.home, self.header.cwd, self.header.id)
        self.path.parent.mkdir(parents=True)
        first, *self.writes = make_log(self.header, *WRITES)
        self.start = len(first)
        self.content = first + b"".join(self.writes)
        self.records = [(seq, *line) for seq, line in enumerate((line for lines in WRITES for line in lines), 1)]

    def put(self, content):
        for path in self.path.parent.iterdir():
            path.unlink()
        self.path.write_bytes(content)

    def asides(self):
        return [path for path in self.path.parent.iterdir() if path != self.path]

    async def read(self):
        return await reread(self.store, self.header.id)

    async def append(self, data):
        log = await self.store.open(self.header.id)
        await read_all(log)
        log.append(update(data))
        await log.close()


@pytest.fixture
async def specimen(tmp_path):
    specimen = Specimen(tmp_path)
    yield specimen
    await specimen.store.close()


@SOME_OR_ALL
async def test_a_log_cut_at_any_byte_keeps_whole_records_and_continues(specimen, step):
    for cut in range(specimen.start, len(specimen.content) + 1, step):
        lines = specimen.content[specimen.start : cut].split(b"\n")[:-1]
        kept = specimen.records[: sum(not line.startswith(b"\t") for line in lines)]
        specimen.put(specimen.content[:cut])
        records, log = await specimen.read()
        assert records == kept
        assert (log.damage is None) == specimen.content[:cut].endswith(b"\n"), "reported if anything was dropped"
        assert log.damage is None or log.damage.torn
        records, log = await specimen.read()
        assert (records, log.damage) == (kept, None), "told once"
        await specimen.append(b'"next"')
        records, log = await specimen.read()
        assert (records, log.damage) == ([*kept, (len(kept) + 1, "update", b'"next"')], None)
        assert specimen.asides() == []


async def test_a_log_cut_inside_its_header_was_never_a_session(specimen):
    for cut in range(specimen.start):
        specimen.put(specimen.content[:cut])
        assert await specimen.store.find(specimen.header.id) is None
        with pytest.raises(SessionNotFoundError):
            await specimen.store.open(specimen.header.id)
        assert specimen.path.stat().st_size == cut


@SOME_OR_ALL
@pytest.mark.parametrize("change", ["a bit", "a newline"])
async def test_a_changed_byte_is_found_and_earlier_writes_are_kept(specimen, change, step):
    for at, byte in list(enumerate(specimen.content))[::step]:
        changed = ord("\n") if change == "a newline" else byte ^ 1 << at % 8
        if changed == byte:
            continue
        broken = specimen.content[:at] + bytes([changed]) + specimen.content[at + 1 :]
        specimen.put(broken)
        if at < specimen.start:
            with pytest.raises((SessionUnreadableError, SessionNotFoundError)):
                await specimen.store.open(specimen.header.id)
            assert specimen.path.read_bytes() == broken
            continue
        records, log = await specimen.read()
        assert log.damage is not None
        assert records == specimen.records[: len(records)]
        assert len(records) >= _records_before(specimen, at)
        if not log.damage.torn:
            assert [path.read_bytes() for path in specimen.asides()] == [broken]
        again, log = await specimen.read()
        assert (again, log.damage) == (records, None)


async def test_damage_is_reported_and_set_aside_and_the_log_continues(specimen):
    broken = specimen.content.replace(b'"update":3}', b'"update":4}')
    specimen.put(broken)
    records, log = await specimen.read()
    assert records == specimen.records[:2]
    at = specimen.start + len(specimen.writes[0])
    assert (log.damage.torn, log.damage.after, log.damage.at_byte) == (False, 2, at)
    assert f"damaged at byte {at}" in str(log.damage)
    assert "everything up to line 2 is kept" in str(log.damage)
    assert log.damage.kept_as in str(log.damage)
    assert Path(log.damage.kept_as).read_bytes() == broken
    await specimen.append(b'"next"')
    records, log = await specimen.read()
    assert (records, log.damage) == ([*specimen.records[:2], (3, "update", b'"next"')], None)
    assert [session.id for session in (await specimen.store.page()).sessions] == [specimen.header.id]


async def test_damaged_originals_are_never_overwritten(specimen):
    broken = [specimen.content[:-30] + b"#" * number + specimen.content[-30:] for number in (1, 2, 3)]
    specimen.put(broken[0])
    await specimen.read()
    for content in broken[1:]:
        specimen.path.write_bytes(content)
        await specimen.read()
    assert sorted(path.read_bytes() for path in specimen.asides()) == sorted(broken)
    names = {path.name.removeprefix(specimen.path.stem) for path in specimen.asides()}
    assert names == {".damaged-1.jsonl", ".damaged-2.jsonl", ".damaged-3.jsonl"}


@pytest.mark.parametrize("order", [(0, 2), (0, 0, 1, 2), (1,), (0, 2, 1)])
async def test_missing_repeated_or_shuffled_writes_are_damage(specimen, order):
    specimen.put(specimen.content[: specimen.start] + b"".join(specimen.writes[number] for number in order))
    records, log = await specimen.read()
    assert records == specimen.records[: len(records)]
    assert log.damage is not None
    assert not log.damage.torn


@pytest.mark.parametrize(
    "tail", [b"\0" * 4096, b"\0\n", b"{}\n", b"garbage\n", b'{"mcp":{}}\n', b'{"turn":{},"title":1}\n']
)
async def test_bytes_after_the_last_write_are_not_read_as_a_record(specimen, tail):
    specimen.put(specimen.content + tail)
    records, log = await specimen.read()
    assert records == specimen.records
    assert log.damage is not None


@pytest.mark.parametrize(
    "line",
    [
        update(b'"\xff"'),
        b'{"jsonrpc":"2.0"\n',
        b'{"turn":{}\n',
        b'\t{"seal":{"first":8,"last":8,"time":5,"sum":"89abcdef"}}\n',
        b'{"seal":{"first":8,"last":8,"time":5,"sum":"89abcdef"}}\n',
        update(b"1") + b'\t{"seal":{"first":8,"last":8,"time":5,"sum":"89ABCDEF"}}\n',
        update(b"1") + b'\t{"seal":{"first":8,"last":8,"time":5,"sum":"89abcdef"}}\n',
    ],
)
async def test_a_whole_line_without_a_checksum_is_validated(specimen, line):
    specimen.put(specimen.content + line)
    records, log = await specimen.read()
    assert records == specimen.records
    assert not log.damage.torn
    assert len(specimen.asides()) == 1


async def test_an_aborted_read_does_not_change_the_log(specimen):
    specimen.put(specimen.content[:-5])
    log = await specimen.store.open(specimen.header.id)
    await log.close()
    assert specimen.path.read_bytes() == specimen.content[:-5]


async def test_new_damage_of_an_open_session_stops_its_writes(specimen):
    specimen.put(specimen.content)
    log = await specimen.store.open(specimen.header.id)
    await read_all(log)
    specimen.path.write_bytes(specimen.content.replace(b'"two"', b'"owt"'))
    assert await read_all(log) == []
    assert not log.damage.torn
    with pytest.raises(Exception, match="another program has changed it"):
        log.append(update(b"1"))
    await log.close()


async def test_a_fork_of_a_torn_log_is_repaired_like_the_log(specimen):
    *lines, _seal = specimen.content.split(b"\n")[:-1]
    for torn, kept in ((specimen.content[:-5], 7), (b"\n".join(lines)[:-5], 6)):
        specimen.put(torn)
        forked = new_header()
        await fork(specimen.store, specimen.header.id, forked)
        records, log = await reread(specimen.store, forked.id)
        assert records == specimen.records[:kept]
        assert log.damage.torn
        assert specimen.header.id.encode() not in log.path.read_bytes()


async def test_a_fork_of_a_damaged_log_is_repaired_like_the_log(specimen):
    specimen.put(specimen.content.replace(b'"update":3}', b'"update":4}'))
    forked = new_header()
    await fork(specimen.store, specimen.header.id, forked)
    records, log = await reread(specimen.store, forked.id)
    assert records == specimen.records[:2]
    assert not log.damage.torn
    assert Path(log.damage.kept_as).name == f"session-{forked.id}.damaged-1.jsonl"


def _ends(specimen):
    end = specimen.start
    for write in specimen.writes:
        end += len(write)
        yield end


def _records_before(specimen, at):
    count = 0
    for end, lines in zip(_ends(specimen), WRITES, strict=True):
        if end > at:
            return count
        count += len(lines)
    return count
