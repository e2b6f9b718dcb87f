"""Viewers of every kind see the same on a node that does not own the session as on the owner."""

import asyncio
import json
import uuid
from contextlib import asynccontextmanager

import httpx2
import psycopg
import pytest

from dragoman.store.postgresql import Database
from dragoman.store.postgresql.errors import DatabaseUnavailableError
from dragoman.store.postgresql.history import ReplicaHistory
from dragoman.store.postgresql.message_cipher import NodeKey
from dragoman.store.postgresql.message_table import MessageTable
from tests.bridge.front.client import answer_to, http_viewer, until_answer
from tests.bridge.front.client import texts as texts_of_events
from tests.bridge.front.serving import serving
from tests.bridge.front.test_shares import attacks_of_a_reader
from tests.bridge.nodes.test_lists import COPY
from tests.bridge.nodes.test_two_nodes import keeping, node_of
from tests.bridge.router.test_search import search
from tests.bridge.versions.pairs import join_v2, texts
from tests.bridge.viewers import OPTIONS, agent, join, steps_text
from tests.store.postgres import make_database
from tests.waiting import until


@asynccontextmanager
async def two_nodes(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        yield one, two


async def test_mode_is_set_once_and_known_on_every_node(address, tmp_path):
    log = tmp_path / "log"
    spec = keeping(tmp_path, log=str(log))
    async with node_of(address, tmp_path, "one", spec) as one, node_of(address, tmp_path, "two", spec) as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        loaded = await there.load(session)
        assert loaded["result"]["modes"]["currentModeId"] == "ask"
        assert (await there.ask("session/set_mode", {"sessionId": session, "modeId": "code"}))["result"] == {}
        asked = [json.loads(line) for line in log.read_text().splitlines()]
        assert [each["params"]["modeId"] for each in asked if each["method"] == "session/set_mode"] == ["code"]
        for node in (one, two):
            late = await join(node, extensions=True)
            assert (await late.load(session))["result"]["modes"]["currentModeId"] == "code"


@pytest.mark.basic
async def test_both_versions_work_through_a_node_that_is_not_the_owner(address, tmp_path):
    async with two_nodes(address, tmp_path) as (one, two):
        here = await join(one, extensions=True)
        session = await here.new()
        await here.prompt(session, {"say": "before"})
        newer, older = await join_v2(two), await join(two)
        assert "error" not in await newer.resume(session)
        await older.load(session)
        assert texts(newer) == texts(older) == ["before"]
        prompt = older.start_prompt(session, {"ask": OPTIONS}, {"say": "asked"})
        newer.choose(await newer.asked(), "yes")
        assert (await older.answer(prompt))["result"]["stopReason"] == "end_turn"
        await newer.until(lambda _: newer.states()[-1]["state"] == "idle")
        assert "error" not in await newer.turn(session, {"say": "after"})
        assert [state["state"] for state in newer.states()][-2:] == ["running", "idle"]
        await older.until(lambda message: '"after"' in json.dumps(message))
        assert older.said(session)[-1] == "after"
        assert newer.said(session)[-1] == "after"
        assert not any(update["sessionUpdate"] == "state_update" for update in older.updates())


async def send_later_message(address, receiver):
    """Send a message of an unknown kind, correctly encrypted."""
    database = Database(address)
    await MessageTable(database, uuid.uuid4(), NodeKey()).send(receiver, 1, [b"of a later version"])
    await database.close()


def send_plain_message(address, receiver):
    with psycopg.connect(address) as connection:
        connection.execute(
            "INSERT INTO dragoman_message (receiver, sender, number, body) VALUES (%s, gen_random_uuid(), 1, 'plain')",
            (receiver,),
        )


async def test_undecodable_message_does_not_stop_others(address, tmp_path, caplog):
    async with two_nodes(address, tmp_path) as (one, two):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        with psycopg.connect(address) as connection:
            nodes = [node for (node,) in connection.execute("SELECT id FROM dragoman_node")]
        for node in nodes:
            await send_later_message(address, node)
            send_plain_message(address, node)
        await until(lambda: caplog.text.count("failed to process a message of another node") == 2 * len(nodes))
        await there.load(session)
        await there.prompt(session, {"say": "after"})
        await here.until(lambda message: '"after"' in json.dumps(message))
        assert there.said(session) == ["after"]


async def test_mcp_secrets_sent_to_the_owner_are_in_no_database_file(own_postgres, tmp_path):
    address = await make_database(own_postgres)
    secret, plain = f"secret-{uuid.uuid4()}", f"plain-{uuid.uuid4()}"
    server = {"name": "notes", "command": "/bin/notes", "args": [], "env": [{"name": "KEY", "value": secret}]}
    async with two_nodes(address, tmp_path) as (one, two):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        assert "result" in await there.load(session, mcpServers=[server])
        assert "result" in await there.prompt(session, {"say": plain})
    own_postgres.stop()
    files = [path.read_bytes() for path in own_postgres.directory.rglob("*") if path.is_file()]
    own_postgres.start()
    assert any(plain.encode() in data for data in files)
    assert not any(secret.encode() in data for data in files)


async def test_session_moves_across_three_nodes_and_keeps_its_viewers(address, tmp_path):
    async with node_of(address, tmp_path, "three") as three:
        async with node_of(address, tmp_path, "two") as two:
            async with node_of(address, tmp_path, "one") as one:
                viewers = [await join(node, extensions=True) for node in (one, two, three)]
                session = await viewers[0].new()
                for viewer in viewers[1:]:
                    await viewer.load(session)
                prompts = [viewer.start_prompt(session, {"say": f"{number}"}) for number, viewer in enumerate(viewers)]
                for viewer, prompt in zip(viewers, prompts, strict=True):
                    assert (await viewer.answer(prompt))["result"]["stopReason"] == "end_turn"
                for viewer in viewers:
                    await viewer.until(lambda _, viewer=viewer: len(viewer.said(session)) == 3)
                assert len({tuple(viewer.said(session)) for viewer in viewers}) == 1
            assert "result" in await viewers[1].prompt(session, {"say": "by two"})
            assert session in two.sessions.by_id
            assert "result" in await viewers[2].prompt(session, {"say": "by three, at two"})
        assert "result" in await viewers[2].prompt(session, {"say": "by three"})
        assert session in three.sessions.by_id
        assert viewers[2].said(session)[3:] == ["by two", "by three, at two", "by three"]


async def test_search_works_on_every_node_and_is_limited_to_a_readers_session(address, tmp_path):
    async with two_nodes(address, tmp_path) as (one, two):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        mine, other = await here.new(), await here.new()
        await here.prompt(mine, {"say": "a yellow Submar"}, {"say": "ine"})
        await here.prompt(other, {"say": "no yellow submarine"})
        await until(lambda: sum(each.prompted for each in two.delivery.histories.stored.values()) == 2)
        answer, hits = await search(there, "yellow submarine")
        assert answer["result"] == {"searched": 2, "complete": True}
        assert {hit["sessionId"] for hit in hits} == {mine, other}
        reader = await join(two, only=mine, extensions=True)
        answer, hits = await search(reader, "yellow submarine")
        assert (answer["result"]["searched"], {hit["sessionId"] for hit in hits}) == (1, {mine})
        await reader.load(mine)
        assert reader.said() == ["a yellow Submar", "ine"]
        assert "error" in await reader.load(other)
        assert "error" in await reader.prompt(mine, {"say": "never"})
        assert "error" in await reader.ask("session/set_title", {"sessionId": mine, "title": "never"})
        await here.prompt(mine, {"say": "more"})
        await reader.until(lambda message: '"more"' in json.dumps(message))
        assert reader.said() == ["a yellow Submar", "ine", "more"]


async def test_http_and_export_work_through_another_node(address, tmp_path):
    specs = {"agents": (keeping(tmp_path),), "store": address}
    async with (
        asyncio.timeout(40),
        serving(tmp_path / "one", **specs) as one,
        serving(tmp_path / "two", **specs) as two,
        http_viewer(two) as there,
    ):
        here = await join(one.bridge.agent(), extensions=True)
        session = await here.new()
        await here.prompt(session, {"say": "before"})
        await there.initialize()
        async with there.stream() as connection, there.stream(session) as events:
            place = {"sessionId": session, "cwd": "/work", "mcpServers": []}
            assert "result" in await answer_to(await there.call("session/load", place), connection)
            text = steps_text({"ask": OPTIONS}, {"flood": 50})
            params = {"sessionId": session, "prompt": [{"type": "text", "text": text}]}
            prompt = await there.call("session/prompt", params, acp_session_id=session)
            before = []
            async for event in events:
                before.append(event)
                if event.message.get("method") == "session/request_permission":
                    break
            assert texts_of_events(before) == ["before"]
            chosen = {"outcome": {"outcome": "selected", "optionId": "no"}}
            assert (await there.post({"id": event.message["id"], "result": chosen})).status_code == 202
            received = await until_answer(prompt, events)
            assert received[-1].message["result"]["stopReason"] == "end_turn"
            assert texts_of_events(received)[1:] == [str(number) for number in range(50)]
            middle = received[len(received) // 2]
        async with there.stream(session, after=middle.id) as events:
            number = await there.call(
                "session/set_mode", {"sessionId": session, "modeId": "code"}, acp_session_id=session
            )
            again = await until_answer(number, events)
            assert texts_of_events(again)[0] == str(int(texts_of_events([middle])[0]) + 1)
        await until(
            lambda: two.bridge.agent().describe_session(session)
        )  # a node that has just started is notified later
        _, code = await two.guard.shares.make(3600, "one", session)
        for headers in (two.headers, {"cookie": (await two.guard.redeem_share(code)).partition(";")[0]}):
            async with httpx2.AsyncClient(base_url=two.url, headers=headers) as http:
                exported = await http.get("/export/one", params={"session": session, "format": "json"})
            assert exported.status_code == 200, exported.text
            kinds = [update["sessionUpdate"] for update in exported.json()["updates"]]
            assert kinds.count("agent_message_chunk") == 52


async def test_http_accepts_a_session_that_was_not_announced_to_the_node(address, tmp_path):
    async with (
        asyncio.timeout(40),
        serving(tmp_path / "one", agents=(agent(),), store=address) as served,
        http_viewer(served) as viewer,
    ):
        one = await join(served.bridge.agent())
        await one.prompt(await one.new(), {"say": "before"})
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(COPY, (2,))
        await viewer.initialize()
        async with viewer.stream():
            for session, status in (("copy1", 202), ("copy3", 404)):
                params = {"sessionId": session, "prompt": []}
                message = {"id": 1, "method": "session/prompt", "params": params}
                assert (await viewer.post(message, acp_session_id=session)).status_code == status
        async with viewer.stream("copy2"):
            pass


def fences(address):
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT session, fence FROM dragoman_end ORDER BY session").fetchall()


async def test_reader_of_one_session_makes_the_node_own_no_other(address, tmp_path):
    async with node_of(address, tmp_path, "before") as before:
        viewer = await join(before)
        shared, other = await viewer.new(), await viewer.new()
        for session in (shared, other):
            await viewer.prompt(session, {"say": "hi"})
    before_readers = fences(address)
    async with node_of(address, tmp_path, "one") as one:
        for reader in (await join(one, only=shared), await join(one, read_only=True)):
            for method in ("session/prompt", "session/set_mode", "session/fork"):
                refused = await reader.ask(method, {"sessionId": other, "cwd": "/work", "mcpServers": []})
                assert "this viewer" in refused["error"]["message"], refused
            reader.send({"method": "session/cancel", "params": {"sessionId": other}})
            assert "result" in await reader.ask("session/list")
        assert other not in one.sessions.by_id
        assert fences(address) == before_readers


async def test_reader_at_another_node_causes_no_message_to_the_agent(address, tmp_path):
    log = tmp_path / "log"
    spec = keeping(tmp_path, log=str(log))
    async with node_of(address, tmp_path, "one", spec) as one, node_of(address, tmp_path, "two", spec) as two:
        here = await join(one)
        session = await here.new()
        await here.prompt(session, {"say": "before"})
        reader = await join(two, read_only=True)
        before = log.read_text()
        await reader.load(session)
        for attack in attacks_of_a_reader(session):
            reader.send(attack)
            await reader.ask(**attack)
        reader.send({"id": "r1", "result": {"evil": True}})
        await reader.ask("session/status", {"sessionId": session})
        await here.ask("_echo")
    sent = [json.loads(line) for line in log.read_text().removeprefix(before).splitlines()]
    assert [message["method"] for message in sent] == ["_echo"]


async def test_records_are_shown_although_another_session_is_unreadable(address, tmp_path, monkeypatch):
    async with two_nodes(address, tmp_path) as (one, two):
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        first, second = await here.new(), await here.new()
        for session in (first, second):
            await there.load(session)
        follow, failing = ReplicaHistory.follow, True

        async def fail_for_second(history, last):
            if failing and history.header.id == second:
                raise DatabaseUnavailableError("test", "it is away")
            return await follow(history, last)

        monkeypatch.setattr(ReplicaHistory, "follow", fail_for_second)
        await here.prompt(second, {"say": "later"})
        await here.prompt(first, {"say": "now"})
        await there.until(lambda _: there.said(first) == ["now"])
        assert there.said(second) == []
        failing = False
        await there.until(lambda _: there.said(second) == ["later"])
