"""Journals that were cut anywhere, or in which any bit was flipped: only lines that were written are read."""

import hashlib
import random

import pytest

from dragoman.bridge.delivery.file_histories import FileHistoryStore
from dragoman.store.runs import TailBudget
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
    """Write a journal of blocks with records, and return its bytes and its messages by number."""
    store = FileHistoryStore(QuickDisk(), tmp_path, budget())
    history = store.create(SESSION, "/work", [])
    store.settle(history)
    messages, seq = {}, 0
    for block in range(4):
        history.record("turn", b'{"event":"start"}')
        history.append(line(b"%d first" % block) + line(b"%d second" % block))
        history.record("config", b'{"n":%d}' % block)
        history.append(line(b"%d third \xe2\x80\xa8" % block))
        history.flush()
        texts = {2: b"%d first" % block, 3: b"%d second" % block, 5: b"%d third \xe2\x80\xa8" % block}
        messages |= {seq + number: line(text)[:-1] for number, text in texts.items()}
        seq += 5
    history.rest()
    return history.path.read_bytes(), messages


async def reopen(folder):
    store = FileHistoryStore(QuickDisk(), folder, budget())
    await store.scan()
    reopened = await store.reopen(SESSION)
    return None if reopened is None else reopened[0]


async def read_all(history):
    part = await history.read(0, history.end)
    assert part.reached == history.end
    return {seq: text for run in part.runs for seq, text in enumerate(run.messages(), run.first)}


async def check(folder, data, messages):
    """Reopen a journal of these bytes twice, and check that it has the first messages and accepts more."""
    for each in folder.iterdir():
        each.unlink()
    (folder / NAME).write_bytes(data)
    history = await reopen(folder)
    if history is None:
        return 0  # without its header the journal belongs to no session
    read = await read_all(history)
    assert read == {seq: text for seq, text in messages.items() if seq <= history.end}
    history.append(line(b"more"))
    history.flush()
    history.rest()
    again = await reopen(folder)
    assert await read_all(again) == {**read, history.end: line(b"more")[:-1]}
    assert again.epoch == history.epoch
    return len(read)


async def test_truncated_journal_keeps_all_lines_before_the_cut(tmp_path, written):
    data, messages = written
    whole = await reopen(tmp_path)
    assert await read_all(whole) == messages
    for size in sorted(random.sample(range(len(data)), PLACES)):
        found = await check(tmp_path, data[:size], messages)
        if found or size > data.index(b"\n", data.index(b"\t")):
            assert found == sum(each.startswith(b'{"jsonrpc":') for each in data[:size].split(b"\n")[:-1])


async def test_journal_with_a_flipped_bit_keeps_earlier_blocks_and_a_copy(tmp_path, written):
    data, messages = written
    for place in random.sample(range(len(data)), PLACES):
        flipped = bytearray(data)
        flipped[place] ^= 1 << random.randrange(8)
        found = await check(tmp_path, bytes(flipped), messages)
        assert found % 3 == 0  # whole blocks
        if 0 < found < len(messages):  # all are there if it was the last newline, as after a write that was cut short
            assert [each for each in tmp_path.iterdir() if "damaged" in each.name and each.read_bytes() == flipped]
