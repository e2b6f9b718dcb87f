"""One node among others: messages are taken once and in order, every wait ends, and nobody is remembered for ever."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager

import psycopg

from dragoman.bridge.delivery import ViewerAccess
from dragoman.bridge.nodes import BridgeNode, mailbox
from dragoman.bridge.nodes.messages import CloseLink, Direct, Joined, Missed, OpenLink, ViewerLine
from tests.bridge.nodes.database_proxy import DatabaseProxy
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import join, steps_text
from tests.waiting import PATIENCE_S, until

LONG_LEASE_S = 600

FULL = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN RAISE EXCEPTION 'No space left on device' USING ERRCODE = 'disk_full'; END$$;
CREATE TRIGGER full_disk BEFORE INSERT ON dragoman_message EXECUTE FUNCTION refuse()
"""
DAMAGED = """
CREATE FUNCTION damage() RETURNS trigger LANGUAGE plpgsql AS
$$BEGIN NEW.data = overlay(NEW.data PLACING '\\x00' FROM length(NEW.data) / 2); RETURN NEW; END$$;
CREATE TRIGGER damage BEFORE INSERT ON dragoman_block FOR EACH ROW
WHEN (position('spoilt' IN encode(NEW.data, 'escape')) > 0) EXECUTE FUNCTION damage()
"""


class NotingAgent:
    """An agent's sessions that notes what the node tells it: there are none."""

    def __init__(self):
        self.taken = []
        self.lost_touch = []

    def take(self, message, sender):
        self.taken.append(message)

    def followed(self):
        return []

    async def follow(self, tips):
        pass

    def greet_node(self, node):
        pass

    def drop_nodes(self, nodes):
        pass

    def lose_touch(self, node, reason):
        self.lost_touch.append(reason)

    def lose_all(self, failure):
        pass

    async def catch_up(self):
        pass


@asynccontextmanager
async def bare_node(address, lease_s=LONG_LEASE_S):
    """Run a node, and give it with what it was told."""
    node, agent = BridgeNode(address, ["one"], lease_s), NotingAgent()
    await node.open()
    node.add("one", agent)
    tasks = [asyncio.create_task(work) for work in node.tasks()]
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield node, agent
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        await node.close()


def execute(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        return connection.execute(statement)


def node_ids(address):
    with psycopg.connect(address) as connection:
        return {id_ for (id_,) in connection.execute("SELECT id FROM dragoman_node")}


async def test_a_message_is_taken_once_although_answers_of_the_database_are_lost(address):
    async with (
        DatabaseProxy(address) as to_here,
        DatabaseProxy(address) as to_there,
        bare_node(to_here.address) as (here, _),
        bare_node(to_there.address) as (there, agent),
    ):
        to_here.lose_answers(b"INSERT INTO dragoman_message", 5)
        to_there.lose_answers(b"DELETE FROM dragoman_message", 5)
        links = [f"{number}" for number in range(10)]
        for link in links:
            here.mailbox.send(there.node.id, CloseLink("one", link))
            await here.mailbox.sent(there.node.id)
        await until(lambda: len(agent.taken) >= len(links))
        here.mailbox.send(there.node.id, CloseLink("one", "last"))
        await until(lambda: agent.taken[-1].link == "last")
        assert [each.link for each in agent.taken] == [*links, "last"]
        assert (to_here.lost, to_there.lost) == (5, 5)


async def test_nodes_that_have_left_are_forgotten_with_their_numbers(address):
    async with bare_node(address) as (here, agent):
        for number in range(3):
            async with bare_node(address) as (there, _):
                there.mailbox.send(here.node.id, CloseLink("one", f"{number}"))
                here.mailbox.send(there.node.id, Joined("one"))
                await until(lambda there=there: there.node.id in here.remembered)
        await until(lambda: not here.remembered)
        assert sorted(each.link for each in agent.taken if isinstance(each, CloseLink)) == ["0", "1", "2"]


async def test_who_waits_for_a_message_does_not_wait_for_those_behind_it(address):
    async with bare_node(address) as (here, _), bare_node(address) as (there, _):

        async def go_on_for_ever():
            while True:
                here.mailbox.send(there.node.id, Joined("one"))
                await asyncio.sleep(0)

        going_on = asyncio.create_task(go_on_for_ever())
        await asyncio.sleep(0)
        await here.mailbox.sent(there.node.id)
        assert here.mailbox.unsent_bytes(there.node.id) > 0
        going_on.cancel()


class GatedTable:
    """A table that takes messages when it is told to."""

    def __init__(self):
        self.sent = []
        self.gate = asyncio.Semaphore(0)

    async def send(self, receiver, first, bodies):
        await self.gate.acquire()
        self.sent.append(len(bodies))


async def test_who_waits_for_a_message_is_not_woken_by_the_end_of_dropped_ones():
    table, there = GatedTable(), uuid.uuid4()
    box = mailbox.Mailbox(table, LONG_LEASE_S)
    for _ in range(3):
        box.send(there, Joined("one"))
    await asyncio.sleep(0)
    box.drop(there)
    box.send(there, Joined("one"))
    waiting = asyncio.create_task(box.sent(there))
    table.gate.release()
    await until(lambda: table.sent == [3])
    assert not waiting.done()
    table.gate.release()
    await waiting
    assert table.sent == [3, 1]


async def test_a_node_that_is_sent_more_than_fits_is_lost_touch_with(address, monkeypatch):
    monkeypatch.setattr(mailbox, "MAX_UNSENT_BYTES", 1_000)
    async with bare_node(address) as (here, agent), bare_node(address) as (there, there_agent):
        execute(address, FULL)
        for link in ("x" * 900, "y" * 900):
            here.mailbox.send(there.node.id, CloseLink("one", link))
        assert "bytes wait for it already" in agent.lost_touch[0]
        await here.mailbox.sent(there.node.id)
        execute(address, "DROP TRIGGER full_disk ON dragoman_message")
        here.mailbox.send(there.node.id, CloseLink("one", "after"))
        await until(lambda: CloseLink("one", "after") in there_agent.taken)
        await until(lambda: Missed("one") in there_agent.taken)
        assert len(there_agent.taken) == 2


async def test_a_request_that_cannot_reach_the_owner_is_refused_in_words_and_the_next_one_can(address, tmp_path):
    async with (
        node_of(address, tmp_path, "one", lease_s=LONG_LEASE_S) as one,
        node_of(address, tmp_path, "two", lease_s=4) as two,
    ):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        await there.load(session)
        execute(address, FULL)
        refused = await there.prompt(session, {"say": "never"})
        assert "cannot be sent" in refused["error"]["message"], refused
        assert "No space left on device" in refused["error"]["message"], refused
        execute(address, "DROP TRIGGER full_disk ON dragoman_message")
        assert "result" in await there.prompt(session, {"say": "on"})
        assert there.said(session) == ["on"]


async def test_a_session_that_cannot_be_read_stops_no_other(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here = await join(one, extensions=True)
        spoilt, sound = await here.new(), await here.new()
        first, second = await join(two, extensions=True), await join(two, extensions=True)
        await first.load(spoilt)
        await second.load(sound)
        execute(address, DAMAGED)
        await here.prompt(spoilt, {"say": "spoilt"})
        await until(first.viewer.closed.is_set)
        assert "cannot be read" in first.viewer.close_reason
        await here.prompt(sound, {"say": "sound"})
        await second.until(lambda _: second.said(sound) == ["sound"])


async def test_a_viewer_that_its_own_node_does_not_know_is_let_go(address, tmp_path):
    async with node_of(address, tmp_path, "one"):
        (owner,) = node_ids(address)
        async with bare_node(address) as (here, agent):
            here.mailbox.send(owner, Direct("one", "nobody", b"{}"))
            await until(lambda: CloseLink("one", "nobody") in agent.taken)


async def test_a_message_for_a_session_that_another_node_has_by_now_is_refused_in_words(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        (first,) = node_ids(address)
        session = await (await join(one)).new()
        async with node_of(address, tmp_path, "two"):
            (second,) = node_ids(address) - {first}
            async with bare_node(address) as (here, agent):
                greeting = json.dumps({"protocolVersion": 1, "clientCapabilities": {}}).encode()
                here.mailbox.send(second, OpenLink("one", "mine", greeting, ViewerAccess(), over_http=False))
                params = {"sessionId": session, "prompt": [{"type": "text", "text": steps_text({"say": "x"})}]}
                line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params})
                here.mailbox.send(second, ViewerLine("one", "mine", line.encode()))
                await until(lambda: any(isinstance(each, Direct) for each in agent.taken))
                (refused,) = [json.loads(each.line) for each in agent.taken if isinstance(each, Direct)]
                assert "another bridge has this session by now" in refused["error"]["message"]


async def test_who_sends_to_a_node_that_has_left_is_told(address):
    async with bare_node(address) as (here, agent):
        here.mailbox.send(uuid.uuid4(), CloseLink("one", "any"))
        await until(lambda: agent.lost_touch)
        assert "has left" in agent.lost_touch[0]
