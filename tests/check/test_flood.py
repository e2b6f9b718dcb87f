"""A side that sends too much has to wait, and is finally reported."""

import asyncio
import sys
from pathlib import Path

import pytest

from dragoman.check.adversary.channels import AdversaryRecording, read_recording
from dragoman.check.conversation import MAX_BYTES, FloodedError
from dragoman.check.driver import AgentOptions, check_agent
from dragoman.check.inbox import Inbox
from dragoman.wire.memory import memory_pair
from dragoman.wire.transport import HIGH_WATER_BYTES

LINE = b"x" * 10_000
COUNT = 200
FLOOD = "import sys\nwhile True: sys.stdout.write('x' * 1_000_000 + chr(10))"


async def test_unread_lines_wait_at_the_sender_and_arrive_in_order():
    theirs, ours = memory_pair()
    inbox = Inbox(ours)
    async with asyncio.TaskGroup() as tasks:
        ours.start(inbox, tasks)
        for number in range(COUNT):
            theirs.write(b"%d %b\n" % (number, LINE))
        await asyncio.sleep(0)
        assert inbox.waiting_bytes < HIGH_WATER_BYTES + 2 * len(LINE)
        assert theirs.unsent_bytes > COUNT * len(LINE) - 2 * HIGH_WATER_BYTES
        assert [await inbox.read() for _ in range(COUNT)] == [b"%d %b" % (number, LINE) for number in range(COUNT)]
        await theirs.close()
        assert await inbox.read() is None
        await ours.close()


async def test_side_that_does_not_read_is_not_read_from():
    theirs, ours = memory_pair()
    inbox = Inbox(ours)
    async with asyncio.TaskGroup() as tasks:
        ours.start(inbox, tasks)
        theirs.write(b"a question\n")
        ours.write(b"x" * (HIGH_WATER_BYTES + 1) + b"\n")
        reading = asyncio.create_task(inbox.read())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not reading.done()
        theirs.start(Inbox(theirs), tasks)
        assert await reading == b"a question"
        await theirs.close()
        await ours.close()


async def test_flooding_agent_is_reported_and_not_judged():
    with pytest.raises(FloodedError, match="more than 64 MiB"):
        await check_agent(AgentOptions(command=(sys.executable, "-c", FLOOD)))


def test_flooding_client_is_reported_and_not_judged(tmp_path: Path):
    path = tmp_path / "tour.ndjson"
    record = AdversaryRecording(path)
    line = b"x" * (MAX_BYTES // 8)
    for _ in range(7):
        record.add("client", line)
    with pytest.raises(FloodedError, match="'tour' the other side sent more than 64 MiB"):
        record.add("client", line)
    record.close()
    with pytest.raises(FloodedError):
        read_recording(path)
