"""Journals that were cut anywhere, or in which any bit was flipped: what is read was written, up to some line."""

import hashlib
import random

import pytest

from dragoman.bridge.delivery.file_journal import FileJournal
from dragoman.bridge.delivery.file_journal_store import FileJournalStore
from dragoman.bridge.delivery.journal import make_header
from dragoman.bridge.delivery.runs import TailBudget
from tests.store.making import QuickDisk

SESSION = "a session"
NAME = f"{hashlib.sha256(SESSION.encode()).hexdigest()[:40]}.jsonl"
PLACES = 150


def line(text):
    return b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"a session","update":"%b"}}\n' % text


def budget():
    return TailBudget(1 << 20, 1 << 20)


@pytest.fixture
def written(tmp_path):
    """Write a journal of blocks with records in them, and give its bytes and its messages by number."""
    journal = FileJournal.create(QuickDisk(), tmp_path / NAME, make_header(SESSION, "/work", []), budget())
    messages, seq = {}, 0
    for block in range(4):
        journal.note("turn", b'{"event":"start"}')
        journal.add(line(b"%d first" % block) + line(b"%d second" % block))
        journal.note("config", b'{"n":%d}' % block)
        journal.add(line(b"%d third \xe2\x80\xa8" % block))
        journal.flush()
        texts = {2: b"%d first" % block, 3: b"%d second" % block, 5: b"%d third \xe2\x80\xa8" % block}
        messages |= {seq + number: line(text)[:-1] for number, text in texts.items()}
        seq += 5
    journal.close()
    return journal.path.read_bytes(), messages


async def reopen(folder):
    store = FileJournalStore(QuickDisk(), folder, budget())
    await store.scan()
    return await store.reopen(SESSION)


async def read_all(journal):
    part = await journal.read(0, journal.end, with_cursors=False)
    assert part.reached == journal.end
    return {seq: text for run in part.runs for seq, text in enumerate(run.messages(), run.first)}


async def check(folder, data, messages):
    """Reopen a journal of these bytes, twice, and see that it has a beginning of the messages and takes more."""
    for each in folder.iterdir():
        each.unlink()
    (folder / NAME).write_bytes(data)
    journal = await reopen(folder)
    if journal is None:
        return 0  # its header is damaged, so that nobody knows whose it is
    read = await read_all(journal)
    assert read == {seq: text for seq, text in messages.items() if seq <= journal.end}
    journal.add(line(b"more"))
    journal.flush()
    journal.close()
    again = await reopen(folder)
    assert await read_all(again) == {**read, journal.end: line(b"more")[:-1]}
    assert again.epoch == journal.epoch
    return len(read)


async def test_a_journal_that_was_cut_anywhere_has_all_lines_before_the_cut(tmp_path, written):
    data, messages = written
    whole = await reopen(tmp_path)
    assert await read_all(whole) == messages
    for size in sorted(random.sample(range(len(data)), PLACES)):
        found = await check(tmp_path, data[:size], messages)
        if found or size > data.index(b"\n", data.index(b"\t")):
            assert found == sum(each.startswith(b'{"jsonrpc":') for each in data[:size].split(b"\n")[:-1])


async def test_a_journal_with_a_flipped_bit_has_all_blocks_before_it_and_is_kept_aside(tmp_path, written):
    data, messages = written
    for place in random.sample(range(len(data)), PLACES):
        flipped = bytearray(data)
        flipped[place] ^= 1 << random.randrange(8)
        found = await check(tmp_path, bytes(flipped), messages)
        assert found % 3 == 0  # whole blocks
        if 0 < found < len(messages):  # all are there if it was the last newline, as after a write that was cut short
            assert [each for each in tmp_path.iterdir() if "damaged" in each.name and each.read_bytes() == flipped]
