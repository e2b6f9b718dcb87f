"""Journals of version 1, as an earlier dragoman has written them: read, gone on with, and converted once."""

import errno
import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from dragoman.bridge.delivery import Cursor, FileJournalStore, file_journal
from dragoman.bridge.delivery.runs import TailBudget
from dragoman.store.disk import Disk
from dragoman.store.naming import aside_path, version1_path

DATA = Path(__file__).parent / "data" / "version1"
SAID = ["Question", "one", "two", "three \u2028 and no newline"]
NUMBERS = [2, 4, 5, 7]


class FullDisk(Disk):
    """A disk on which nothing can be written."""

    def write(self, fd, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def put(folder, name):
    path = folder / f"{hashlib.sha256(f'session {name}'.encode()).hexdigest()[:40]}.jsonl"
    shutil.copy(DATA / f"{name}.jsonl", path)
    return path


async def reopen(folder, name, disk=None):
    store = FileJournalStore(disk or Disk(), folder, TailBudget(1 << 20, 1 << 20))
    await store.scan()
    return await store.reopen(f"session {name}")


async def read_all(opened):
    """Read a journal from its file, a part at a time, and give numbers and texts."""
    found, at = [], 0
    while at < opened.end:
        part = await opened.read(at, opened.end, with_cursors=False)
        at = part.reached
        for run in part.runs:
            found += zip(range(run.first, run.last + 1), map(json.loads, run.messages()), strict=True)
    assert {message["params"]["sessionId"] for _, message in found} == {opened.header.id}
    return [(seq, message["params"]["update"]["content"]["text"]) for seq, message in found]


async def test_a_journal_is_read_and_converted_and_its_numbers_and_cursors_hold(tmp_path):
    path = put(tmp_path, "plain")
    opened = await reopen(tmp_path, "plain")
    assert await read_all(opened) == list(zip(NUMBERS, SAID, strict=True))
    assert opened.earlier.prompts == 1
    assert json.loads(opened.earlier.config)["modes"]["currentModeId"] == "ask"
    assert path.read_bytes().startswith(b'{"dragoman":2,')
    assert version1_path(path).read_bytes() == (DATA / "plain.jsonl").read_bytes()
    # An earlier dragoman made epochs of the first line of the file.
    first = (DATA / "plain.jsonl").read_bytes().split(b"\n")[0] + b"\n"
    epoch = hashlib.sha256(first + file_journal.boot_id()).hexdigest()[:12]
    assert opened.has(Cursor(epoch, 5))


async def test_a_converted_journal_is_gone_on_with_and_the_original_goes_with_the_next_start(tmp_path):
    path = put(tmp_path, "plain")
    opened = await reopen(tmp_path, "plain")
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "more"}}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "session plain", "update": update}}
    opened.add(json.dumps(message, separators=(",", ":")).encode() + b"\n")
    opened.flush()
    opened.close()
    again = await reopen(tmp_path, "plain")
    assert await read_all(again) == [*zip(NUMBERS, SAID, strict=True), (9, "more")]
    assert again.epoch == opened.epoch
    assert not version1_path(path).exists()


@pytest.mark.parametrize("name", ["torn", "damaged"])
async def test_a_journal_that_lost_its_end_is_converted_as_far_as_it_is_sound_and_fits_no_older_cursor(tmp_path, name):
    path = put(tmp_path, name)
    first = path.read_bytes().split(b"\n")[0] + b"\n"
    opened = await reopen(tmp_path, name)
    assert await read_all(opened) == list(zip(NUMBERS[:3], SAID[:3], strict=True))
    epoch = hashlib.sha256(first + file_journal.boot_id()).hexdigest()[:12]
    assert not opened.has(Cursor(epoch, 2))
    assert aside_path(path, 1).exists() == (name == "damaged")
    again = await reopen(tmp_path, name)
    assert again.epoch == opened.epoch


async def test_a_journal_that_cannot_be_converted_is_read_where_it_is(tmp_path):
    path = put(tmp_path, "plain")
    opened = await reopen(tmp_path, "plain", FullDisk())
    assert await read_all(opened) == list(zip(NUMBERS, SAID, strict=True))
    assert opened.failure is not None
    assert path.read_bytes() == (DATA / "plain.jsonl").read_bytes()
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


async def test_a_deleted_journal_leaves_no_original(tmp_path):
    put(tmp_path, "plain")
    (await reopen(tmp_path, "plain")).delete()
    assert list(tmp_path.iterdir()) == []
