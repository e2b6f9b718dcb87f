"""A writer that is killed at any moment. All acknowledged lines are there, in order, without gaps or repetitions."""

import asyncio
import os
import random
import sys

import pytest

from dragoman.store import FileStore
from tests.store.making import new_header, read_all, reread

WRITER = """
import asyncio, os, random, sys
from pathlib import Path
from dragoman.store import FileStore
from tests.store.making import update

async def main():
    store = FileStore(Path(sys.argv[1]))
    log = await store.open(sys.argv[2])
    number = 0
    async for blocks in log.blocks():
        number = blocks[-1].last
    while True:
        for _ in range(random.choice((1, 1, 3, 50))):
            number += 1
            log.append(update(b'{"n":%d,"text":"%b"}' % (number, b"x" * random.choice((0, 100, 20_000)))))
        log.flush()
        os.write(1, b"%d\\n" % number)
        if random.random() < 0.02:
            await log.sync()

asyncio.run(main())
"""


async def run_until_killed(home, session_id, acknowledgements):
    """Start a writer, and kill it a random moment after some acknowledgements. Return its last acknowledgement."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WRITER, str(home), session_id, stdout=asyncio.subprocess.PIPE
    )
    heard = [await child.stdout.readline() for _ in range(acknowledgements)]
    for _ in range(random.randrange(2000)):
        os.getppid()
    child.kill()
    heard += (await child.communicate())[0].splitlines(keepends=True)
    return int([line for line in heard if line.endswith(b"\n")][-1])


async def kill_repeatedly(home, rounds):
    store, header = FileStore(home), new_header()
    await (await store.create(header)).close()
    torn = 0
    for number in range(rounds):
        acknowledged = await run_until_killed(home, header.id, random.randrange(1, 30))
        log = await store.open(header.id)
        records = await read_all(log)
        assert len(records) >= acknowledged
        assert [seq for seq, _, _ in records] == list(range(1, len(records) + 1))
        assert all(data.startswith(b'{"n":%d,' % seq) for seq, _, data in records)
        assert log.damage is None or log.damage.torn
        torn += log.damage is not None
        await log.close()
        if number % 10 == 9:  # limits the size of the file
            await store.delete(header.id)
            await (await store.create(header)).close()
    records, log = await reread(store, header.id)
    assert log.damage is None
    await store.close()
    return torn


async def test_a_killed_writer_loses_no_acknowledged_line(tmp_path):
    await kill_repeatedly(tmp_path, 8)


@pytest.mark.soak
@pytest.mark.skipif(not os.environ.get("DRAGOMAN_SOAK"), reason="long: set DRAGOMAN_SOAK=1, or run make soak")
async def test_a_thousand_killed_writers_lose_no_acknowledged_line(tmp_path):
    await kill_repeatedly(tmp_path, 1000)
