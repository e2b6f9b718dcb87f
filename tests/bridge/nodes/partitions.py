"""Nodes on separate machines with wrong clocks, which are cut off, frozen or killed during a turn.

`test_partitions` runs these.
"""

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
from datetime import datetime

import psycopg
import pytest

from tests.bridge.nodes.cluster import NetworkViewer, check_writes, cluster_of, note_writes
from tests.bridge.nodes.machines import build_wrong_clock
from tests.store.postgres import make_database
from tests.waiting import until

LEASE_S = 2.0
SKEW_S = 7 * 60
CHUNKS = 200
KINDS = ("database", "viewers", "machine", "frozen", "killed")


@pytest.fixture
def clocks(tmp_path):
    """Return the environments of two nodes whose clocks are wrong by minutes, one early and one late."""
    library = build_wrong_clock(tmp_path)
    if library is None:
        pytest.skip("there is no C compiler here, which makes the clocks of nodes wrong")
    made = [{"LD_PRELOAD": str(library), "SKEW_S": str(skew_s)} for skew_s in (SKEW_S, -SKEW_S)]
    for environment in made:
        command = [sys.executable, "-c", "import time; print(time.time())"]
        there = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, check=True).stdout
        assert abs(float(there) - time.time()) > SKEW_S / 2
    return made


class Round:
    """One failure during one turn, with a viewer at the owner of a session and one at the other node."""

    def __init__(self, owner, other):
        self.owner = owner
        self.other = other
        self.here = NetworkViewer()
        self.there = NetworkViewer()

    async def begin(self, seen):
        """Start a turn until the viewer at the other node has seen some of it. Return the refused sessions."""
        refused = await self.here.begin(self.owner)
        await self.there.open(self.other, self.here.session)
        prompt = await self.here.start_prompt({"drip": CHUNKS})
        # On a machine that is too busy for the lease, the turn ends with an error.
        await until(lambda: len(self.there.said()) >= seen or self.here.is_answered(prompt))
        return refused

    async def cut_viewers(self):
        """Move the viewer at the owner to the other node during the turn."""
        self.owner.machine.cut("viewers")
        await self.here.open(self.other, self.here.session)
        await self.there.prompt_until_accepted("after")
        self.owner.machine.heal("viewers")

    async def cut_database(self, *cables):
        """Cut the owner off. Its agent must end although no node can reach it."""
        for cable in cables:
            self.owner.machine.cut(cable)
        await self.there.prompt_until_accepted("after")
        await until(lambda: not self.owner.agents())
        for cable in cables:
            self.owner.machine.heal(cable)

    async def freeze(self):
        """Freeze the owner beyond its lease. Its agent must end when the owner continues."""
        agents = self.owner.agents()
        self.owner.freeze()
        await self.there.prompt_until_accepted("after")
        self.owner.thaw()
        await until(lambda: not agents & self.owner.agents())

    async def kill(self):
        """Kill the owner. Its agent must end with it."""
        await self.owner.kill()
        await self.there.prompt_until_accepted("after")
        await until(lambda: not self.owner.agents())
        await self.owner.start()
        await self.here.open(self.owner, self.here.session)

    async def end(self):
        """Check that both viewers, and a late one at either node, have the same updates without repetitions."""
        await self.here.prompt_until_accepted("again")
        for node in (self.owner, self.other):
            late = NetworkViewer()
            await late.open(node, self.here.session)
            for viewer in (self.here, self.there):
                await until(lambda viewer=viewer, late=late: len(viewer.updates) >= len(late.updates))
                assert viewer.updates == late.updates
            late.leave()
        said = self.there.said()
        numbers = [text for text in said if text.isdigit()]
        # A turn that was interrupted after its only text is refused and sent again.
        after, again = said.count("after"), said.count("again")
        assert said == [*map(str, range(len(numbers))), *["after"] * after, *["again"] * again]
        assert 1 <= after <= 1 + len(self.there.refusals)
        assert 1 <= again <= 1 + len(self.here.refusals)

    def leave(self):
        self.here.leave()
        self.there.leave()


async def run_round(kind, owner, other, seen):
    """Run one failure, and return the sessions that were refused."""
    one = Round(owner, other)
    refused = await one.begin(seen)
    match kind:
        case "viewers":
            await one.cut_viewers()
        case "database":
            await one.cut_database("database")
        case "machine":
            await one.cut_database("database", "viewers")
        case "frozen":
            await one.freeze()
        case "killed":
            await one.kill()
    await one.end()
    one.leave()
    return refused


async def check_times(nodes, counts, begun):
    """Check that lists show the time of the database on every node, for sessions of any owner."""
    for node in nodes:
        viewer = NetworkViewer()
        await viewer.connect(node)
        listed = (await viewer.ask("session/list"))["result"]["sessions"]
        assert len(listed) in counts
        for each in listed:
            updated = datetime.fromisoformat(each["updatedAt"]).timestamp()
            assert begun - SKEW_S / 2 < updated < time.time() + SKEW_S / 2, each
        viewer.leave()


def check_logged_times(address, begun):
    """Check that headers and blocks have the time of the database, from any writer."""
    allowed = begun - SKEW_S / 2, time.time() + SKEW_S / 2
    with psycopg.connect(address) as connection:
        headers = connection.execute("SELECT header FROM dragoman_session").fetchall()
        blocks = connection.execute("SELECT data FROM dragoman_block").fetchall()
    for (header,) in headers:
        created = datetime.fromisoformat(json.loads(header)["created"]).timestamp()
        assert allowed[0] < created < allowed[1], header
    for (block,) in blocks:
        sealed = int(re.search(rb'\t\{"seal":\{[^\n]*"time":(\d+)', block)[1]) / 1000
        assert allowed[0] < sealed < allowed[1], block


@pytest.mark.timeout(3600)
async def test_updates_are_seen_once_and_one_node_writes(own_postgres, tmp_path, clocks):
    rounds = int(os.environ.get("ROUNDS", len(KINDS)))
    own_postgres.open_to("198.18.0.0/15")
    address = await make_database(own_postgres)
    note_writes(address)
    moments, begun, refused = random.Random(rounds), time.time(), 0
    async with cluster_of(own_postgres, address, tmp_path, LEASE_S, clocks) as nodes:
        for number in range(rounds):
            owner, other = nodes if number % 2 else reversed(nodes)
            kind = KINDS[number % len(KINDS)]
            async with asyncio.timeout(90):
                refused += await run_round(kind, owner, other, moments.randrange(1, CHUNKS))
        assert check_writes(address) > rounds
        await check_times(nodes, range(rounds, rounds + refused + 1), begun)
        check_logged_times(address, begun)
