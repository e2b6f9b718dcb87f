"""One node among others: messages are received once and in order, every wait ends, and old nodes are forgotten."""

import asyncio
import gc
import json
import uuid
from contextlib import asynccontextmanager

import psycopg
import pytest

from dragoman.bridge.nodes import BridgeNode, mailbox
from dragoman.bridge.nodes.messages import CloseLink, Direct, Joined, Missed, OpenLink, ViewerLine
from dragoman.bridge.viewers import ViewerAccess
from tests.bridge.delivery.test_viewers import HttpViewer, answers, read_until
from tests.bridge.nodes.database_proxy import DatabaseProxy
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import agent, join, steps_text
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
    """An agent without sessions that records the node's calls."""

    def __init__(self):
        self.received = []
        self.lost_touch = []

    def receive_message(self, message, sender):
        self.received.append(message)

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
    """Run a node, and yield it with the calls it made."""
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


@pytest.mark.basic
async def test_message_is_received_once_despite_lost_database_answers(address):
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
        await until(lambda: len(agent.received) >= len(links))
        here.mailbox.send(there.node.id, CloseLink("one", "last"))
        await until(lambda: agent.received[-1].link == "last")
        assert [each.link for each in agent.received] == [*links, "last"]
        assert (to_here.lost, to_there.lost) == (5, 5)


def remembered(node_numbers):
    """Return the ids of nodes that are still referenced by objects of this test."""
    gc.collect()
    return [each for each in gc.get_objects() if isinstance(each, uuid.UUID) and each.int in node_numbers]


@pytest.mark.basic
async def test_departed_nodes_are_forgotten_with_their_numbers(address):
    # Searching all objects of the process would block the nodes for most of the time.
    gc.collect()
    gc.freeze()
    async with bare_node(address) as (here, agent):
        left = set()
        for number in range(3):
            async with bare_node(address) as (there, _):
                there.mailbox.send(here.node.id, CloseLink("one", f"{number}"))
                here.mailbox.send(there.node.id, Joined("one"))
                await until(lambda there=there: here.others("one") == [there.node.id])
                left.add(there.node.id.int)
        del there
        await until(lambda: len(agent.received) >= len(left))
        await until(lambda: not remembered(left))
        assert sorted(each.link for each in agent.received if isinstance(each, CloseLink)) == ["0", "1", "2"]


async def test_wait_for_a_message_ignores_later_ones(address):
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
    """A table that accepts messages once its gate is open."""

    def __init__(self):
        self.sent = []
        self.gate = asyncio.Semaphore(0)

    async def send(self, receiver, first, bodies):
        await self.gate.acquire()
        self.sent.append(len(bodies))


async def test_wait_for_a_message_ignores_dropped_ones():
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


async def test_full_queue_loses_touch_with_the_node(address, monkeypatch):
    monkeypatch.setattr(mailbox, "MAX_UNSENT_BYTES", 1_000)
    async with bare_node(address) as (here, agent), bare_node(address) as (there, there_agent):
        execute(address, FULL)
        for link in ("x" * 900, "y" * 900):
            here.mailbox.send(there.node.id, CloseLink("one", link))
        assert "bytes are already waiting for it" in agent.lost_touch[0]
        await here.mailbox.sent(there.node.id)
        execute(address, "DROP TRIGGER full_disk ON dragoman_message")
        here.mailbox.send(there.node.id, CloseLink("one", "after"))
        await until(lambda: CloseLink("one", "after") in there_agent.received)
        await until(lambda: Missed("one") in there_agent.received)
        assert len(there_agent.received) == 2


async def test_request_that_misses_the_owner_is_refused_and_the_next_works(address, tmp_path):
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


async def test_unreadable_session_does_not_stop_others(address, tmp_path):
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


async def test_viewer_unknown_to_its_own_node_is_released(address, tmp_path):
    async with node_of(address, tmp_path, "one"):
        (owner,) = node_ids(address)
        async with bare_node(address) as (here, agent):
            here.mailbox.send(owner, Direct("one", "nobody", b"{}"))
            await until(lambda: CloseLink("one", "nobody") in agent.received)


def open_link(link, **fields):
    """Return a message that opens a link for a viewer without capabilities."""
    greeting = json.dumps({"protocolVersion": 1, "clientCapabilities": {}}).encode()
    return OpenLink("one", link, greeting, ViewerAccess(), over_http=False, **fields)


def prompt_line(link, session, text):
    """Return a message with a prompt of that viewer. Its request id is 1."""
    params = {"sessionId": session, "prompt": [{"type": "text", "text": steps_text({"say": text})}]}
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "session/prompt", "params": params})
    return ViewerLine("one", link, line.encode())


def answered_links(agent):
    """Return the links whose prompts were answered."""
    return [each.link for each in agent.received if isinstance(each, Direct) and b'"stopReason"' in each.line]


async def test_request_of_a_link_that_was_given_up_is_not_served(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        viewer = await join(one)
        session = await viewer.new()
        await viewer.prompt(session, {"say": "before"})
    async with node_of(address, tmp_path, "two") as two:
        (owner,) = node_ids(address)
        async with bare_node(address) as (here, agent):
            for losses, link in enumerate(("lost", "new")):
                here.mailbox.send(owner, open_link(link, losses=losses))
                here.mailbox.send(owner, prompt_line(link, session, link))
            await until(lambda: answered_links(agent))
            assert answered_links(agent) == ["new"]
        viewer = await join(two)
        await viewer.load(session)
        assert viewer.said(session) == ["before", "new"]


async def test_message_for_a_session_that_moved_is_refused(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        (first,) = node_ids(address)
        session = await (await join(one)).new()
        async with node_of(address, tmp_path, "two"):
            (second,) = node_ids(address) - {first}
            async with bare_node(address) as (here, agent):
                here.mailbox.send(second, open_link("mine"))
                here.mailbox.send(second, prompt_line("mine", session, "x"))
                await until(lambda: any(isinstance(each, Direct) for each in agent.received))
                (refused,) = [json.loads(each.line) for each in agent.received if isinstance(each, Direct)]
                assert "another bridge has taken over this session" in refused["error"]["message"]


async def test_sender_learns_that_the_receiving_node_left(address):
    async with bare_node(address) as (here, agent):
        here.mailbox.send(uuid.uuid4(), CloseLink("one", "any"))
        await until(lambda: agent.lost_touch)
        assert "has left" in agent.lost_touch[0]


async def test_session_id_that_the_database_cannot_store_is_refused(address, tmp_path):
    async with node_of(address, tmp_path, "one", agent(session_id="a\0b")) as one:
        viewer = await join(one, extensions=True)
        for _ in range(2):
            refused = await viewer.ask("session/new", {"cwd": "/work", "mcpServers": []})
            assert "NUL" in refused["error"]["message"]
        assert one.sessions.by_id == {}


async def test_session_that_the_database_refuses_is_refused(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        viewer, http = await join(one, extensions=True), HttpViewer(one)
        await http.initialize()
        connection = http.viewer.connection_stream(None)
        with psycopg.connect(address, autocommit=True) as database:
            database.execute("ALTER TABLE dragoman_session ADD CHECK (header IS NULL)")
            refused = await viewer.ask("session/new", {"cwd": "/work", "mcpServers": []})
            assert "violates check constraint" in refused["error"]["message"]
            asked = http.request("session/new", {"cwd": "/work", "mcpServers": []})
            refused = json.loads((await read_until(connection, answers(asked)))[-1].data)
            assert "violates check constraint" in refused["error"]["message"]
            database.execute("ALTER TABLE dragoman_session DROP CONSTRAINT dragoman_session_header_check")
        # The agent with the refused sessions is stopped, and another one is started.
        while "error" in (answer := await viewer.ask("session/new", {"cwd": "/work", "mcpServers": []})):
            assert "violates check constraint" in answer["error"]["message"]
