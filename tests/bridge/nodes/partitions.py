"""Nodes on machines of their own, with wrong clocks, that are cut off, stand still or are killed in a turn.

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
    """The environments of two nodes whose clocks are wrong by minutes, one early and one late."""
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
    """One trouble in one turn: a viewer at the owner of a session, and one at the other node."""

    def __init__(self, owner, other):
        self.owner = owner
        self.other = other
        self.here = NetworkViewer()
        self.there = NetworkViewer()

    async def begin(self, seen):
        """Begin a turn, until the viewer at the other node has seen some of it; give the refused sessions."""
        refused = await self.here.begin(self.owner)
        await self.there.open(self.other, self.here.session)
        prompt = await self.here.start_prompt({"drip": CHUNKS})
        # On a machine that is too busy for the lease the turn ends by itself, in words.
        await until(lambda: len(self.there.said()) >= seen or self.here.is_answered(prompt))
        return refused

    async def cut_viewers(self):
        """Let the viewer at the owner go to the other node in the middle of the turn."""
        self.owner.machine.cut("viewers")
        await self.here.open(self.other, self.here.session)
        await self.there.prompt_until_taken("after")
        self.owner.machine.heal("viewers")

    async def cut_database(self, *cables):
        """Cut the owner off: its agent has to end although nobody can tell it to."""
        for cable in cables:
            self.owner.machine.cut(cable)
        await self.there.prompt_until_taken("after")
        await until(lambda: not self.owner.agents())
        for cable in cables:
            self.owner.machine.heal(cable)

    async def freeze(self):
        """Let the owner stand still beyond its lease; its agent has to end when it wakes."""
        agents = self.owner.agents()
        self.owner.freeze()
        await self.there.prompt_until_taken("after")
        self.owner.thaw()
        await until(lambda: not agents & self.owner.agents())

    async def kill(self):
        """Kill the owner: its agent has to end with it."""
        await self.owner.kill()
        await self.there.prompt_until_taken("after")
        await until(lambda: not self.owner.agents())
        await self.owner.start()
        await self.here.open(self.owner, self.here.session)

    async def end(self):
        """See that both viewers, and one that comes late to either node, have the same updates, none twice."""
        await self.here.prompt_until_taken("again")
        for node in (self.owner, self.other):
            late = NetworkViewer()
            await late.open(node, self.here.session)
            for viewer in (self.here, self.there):
                await until(lambda viewer=viewer, late=late: len(viewer.updates) >= len(late.updates))
                assert viewer.updates == late.updates
            late.leave()
        said = self.there.said()
        numbers = [text for text in said if text.isdigit()]
        # A turn that was broken off behind its only words is refused, and asked for again.
        after, again = said.count("after"), said.count("again")
        assert said == [*map(str, range(len(numbers))), *["after"] * after, *["again"] * again]
        assert 1 <= after <= 1 + len(self.there.refusals)
        assert 1 <= again <= 1 + len(self.here.refusals)

    def leave(self):
        self.here.leave()
        self.there.leave()


async def run_round(kind, owner, other, seen):
    """Play one trouble, and give the sessions that were refused."""
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
    """See that lists tell the time of the database on every node, whoever owns the sessions."""
    for node in nodes:
        viewer = NetworkViewer()
        await viewer.come(node)
        listed = (await viewer.ask("session/list"))["result"]["sessions"]
        assert len(listed) in counts
        for each in listed:
            updated = datetime.fromisoformat(each["updatedAt"]).timestamp()
            assert begun - SKEW_S / 2 < updated < time.time() + SKEW_S / 2, each
        viewer.leave()


def check_logged_times(address, begun):
    """See that headers and blocks have the time of the database, whoever wrote them."""
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
async def test_nothing_seen_is_lost_or_repeated_and_one_node_writes(own_postgres, tmp_path, clocks):
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
