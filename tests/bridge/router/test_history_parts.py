"""A history that a viewer reads in parts: nothing is lost, nothing comes twice, and it is the same as a full replay."""

import json
import random

import pytest

from tests.bridge.delivery.test_viewers import HttpViewer, answers, read_until
from tests.bridge.history_parts import conversation_of, random_updates, read_parts, replayed
from tests.bridge.long_sessions import long_updates, write_long_session
from tests.bridge.nodes.test_two_nodes import node_of
from tests.bridge.viewers import LOADING, RESUMING, agent, go_on_elsewhere, join, serve

CWD = "/earlier/long"
PAGED = {"_meta": {"dragoman": {"paged": True}}}


def asking(viewer):
    async def ask(method, params):
        return (await viewer.ask(method, params))["result"]

    return ask


async def load_paged(viewer, session, cwd=CWD, after=None):
    meta = {"dragoman": {"paged": True, **({} if after is None else {"after": after})}}
    answer = await viewer.ask("session/load", {"sessionId": session, "cwd": cwd, "mcpServers": [], "_meta": meta})
    return answer["result"]["_meta"]["dragoman"]


async def find(viewer, session, query):
    return (await viewer.ask("_dragoman/find", {"sessionId": session, "query": query}))["result"]


def _as_shown(update):
    """Return an update as a viewer without compactions receives it."""
    if update["sessionUpdate"] != "compaction_update":
        return update
    words = "Summarizing the conversation: completed\n\n"
    return {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": words}}


def texts_of(entries):
    return "".join(e["update"]["content"]["text"] for e in entries if "content" in e["update"])


async def test_parts_equal_the_full_replay(tmp_path):
    histories = {f"long-{seed}": random_updates(random.Random(seed), 40 * seed**2 + 1) for seed in range(10)}
    for session, updates in histories.items():
        write_long_session(tmp_path, "one", session, updates)
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        full, paged = await join(served, extensions=True), await join(served, extensions=True)
        counts = []
        for session, updates in histories.items():
            await full.load(session, cwd=CWD)
            expected = replayed(full.lines, session)
            assert len(expected) == len(updates)
            opened = await load_paged(paged, session)
            assert replayed(paged.lines, session) == []
            entries, count = await read_parts(asking(paged), session, opened["before"])
            counts.append(count)
            assert conversation_of([each["update"] for each in entries]) == conversation_of(expected)
            numbers = [each["seq"] for each in entries]
            assert len(set(numbers)) == len(numbers)
            assert len(entries) < len(updates) or len(updates) < 10
        assert max(counts) > 1, "no history has more than one part"


async def test_part_begins_with_a_message_of_the_user(tmp_path):
    write_long_session(tmp_path, "one", "long", long_updates(20_000))
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = await join(served, extensions=True)
        opened = await load_paged(viewer, "long")
        part = await asking(viewer)("_dragoman/history", {"sessionId": "long", "before": opened["before"]})
        assert part["updates"][0]["update"]["sessionUpdate"] == "user_message_chunk"
        assert len(json.dumps(part)) < 300_000
        assert part["updates"][0]["seq"] - 1 == int(part["before"].split(".")[1])
        to = {"sessionId": "long", "before": part["before"], "to": 15_000}
        reached = await asking(viewer)("_dragoman/history", to)
        assert int(reached["before"].split(".")[1]) < 15_000


async def test_long_message_is_divided_and_complete(tmp_path):
    words = [f"{number:09}{'x' * 90} " for number in range(25_000)]
    updates = [{"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": word}} for word in words]
    write_long_session(tmp_path, "one", "long", updates)
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = await join(served, extensions=True)
        entries, count = await read_parts(asking(viewer), "long", (await load_paged(viewer, "long"))["before"])
        assert texts_of(entries) == "".join(words)
        assert count > 1
        assert len(entries) == count


async def test_later_updates_follow_the_parts(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one, two = await join(served, extensions=True), await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"flood": 300})
        opened = await load_paged(two, session, "/work")
        await one.prompt(session, {"say": "later"})
        await two.until(lambda message: "later" in json.dumps(message))
        entries, _ = await read_parts(asking(two), session, opened["before"])
        said = [
            e["update"]["content"]["text"] for e in entries if e["update"]["sessionUpdate"] == "agent_message_chunk"
        ]
        assert said == ["".join(map(str, range(300)))]
        assert two.said(session) == ["later"]


async def test_viewer_that_missed_much_reads_the_end_again(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one, two = await join(served, extensions=True), await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "early"})
        seen = (await load_paged(two, session, "/work"))["cursor"]
        two.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        await one.prompt(session, {"flood": 100})
        assert "before" not in await load_paged(two, session, "/work", seen)
        two.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        await one.prompt(session, {"flood": 2_500})
        again = await load_paged(two, session, "/work", seen)
        assert (again["reset"], again["before"]) == (True, again["cursor"])
        await two.announced(session, lambda described: described.get("reset") is True)


async def test_settings_of_earlier_parts_are_found(tmp_path):
    plan = {"sessionUpdate": "plan", "entries": [{"content": "x", "priority": "low", "status": "completed"}]}
    usage = [{"sessionUpdate": "usage_update", "used": used, "size": 9} for used in (1, 2)]
    commands = {"sessionUpdate": "available_commands_update", "availableCommands": []}
    title = {"sessionUpdate": "session_info_update", "title": "Named"}
    updates = [commands, usage[0], plan, title, usage[1], *long_updates(6_000)[:4]]
    write_long_session(tmp_path, "one", "over", updates)
    write_long_session(tmp_path, "one", "open", updates[:5])
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = await join(served, extensions=True)
        for session, is_shown in (("over", False), ("open", True)):
            opened = await load_paged(viewer, session)
            found = await asking(viewer)("_dragoman/settings", {"sessionId": session, "before": opened["before"]})
            expected = [commands, usage[1], title, *([plan] if is_shown else [])]
            assert sorted(map(json.dumps, found["updates"])) == sorted(map(json.dumps, expected))


async def test_agent_that_replays_does_not_delay_the_viewer(tmp_path):
    store, gate = tmp_path / "store", tmp_path / "gate"
    store.mkdir()
    async with serve(tmp_path, agent(capabilities=LOADING, store=str(store))) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "first"})
    go_on_elsewhere(store, session, turns=1)
    waiting = agent(capabilities=LOADING, store=str(store), load_waits=str(gate))
    async with serve(tmp_path, waiting) as served:
        viewer = await join(served, extensions=True)
        opened = await load_paged(viewer, session, "/work")
        entries, _ = await read_parts(asking(viewer), session, opened["before"])
        assert texts_of(entries).endswith("first")
        gate.touch()
        await viewer.until(lambda message: "answer 0" in json.dumps(message))


async def test_parts_over_http_equal_the_replay(tmp_path):
    updates = random_updates(random.Random(3), 3_000)
    write_long_session(tmp_path, "one", "long", updates)
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = HttpViewer(served)
        await viewer.initialize(_meta={"dragoman": {"viewer": 1}})
        connection = viewer.viewer.connection_stream(None)
        loading = viewer.request("session/load", {"sessionId": "long", "cwd": CWD, "mcpServers": [], **PAGED})
        stream = viewer.viewer.session_stream("long", None)

        async def answer_of(stream, number):
            events = await read_until(stream, answers(number))
            return next(filter(answers(number), (json.loads(event.data) for event in events)))["result"]

        async def ask(method, params):
            return await answer_of(stream, viewer.request(method, params))

        opened = (await answer_of(connection, loading))["_meta"]["dragoman"]

        entries, count = await read_parts(ask, "long", opened["before"])
        shown = conversation_of([each["update"] for each in entries])
        assert shown == conversation_of([_as_shown(each) for each in updates])
        assert count > 1


async def test_parts_from_another_node_equal_the_replay(address, tmp_path):
    updates = random_updates(random.Random(5), 2_000)
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, full, paged = await join(one), await join(two, extensions=True), await join(two, extensions=True)
        session = await here.new()
        for at in range(0, len(updates), 250):
            await here.prompt(session, *({"update": each} for each in updates[at : at + 250]))
        await full.load(session)
        opened = await load_paged(paged, session, "/work")
        entries, _ = await read_parts(asking(paged), session, opened["before"])
        expected = replayed(full.lines, session)
        assert len(expected) > len(updates)
        assert conversation_of([each["update"] for each in entries]) == conversation_of(expected)
        assert two.sessions.by_id == {}, "the other node took over the session"
        assert (await find(paged, session, "Call 7"))["hits"]
        # A prompt through this node arrives after the parts.
        await paged.prompt(session, {"say": "more"})
        assert paged.said(session) == ["more"]


async def test_find_shows_every_place_in_order(tmp_path):
    write_long_session(tmp_path, "one", "long", long_updates(5_000))
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = await join(served, extensions=True)
        await load_paged(viewer, "long")
        [hit] = (await find(viewer, "long", "WORD3-14.  word3-15"))["hits"]
        assert hit == {
            "seq": 156,
            "nth": 0,
            "role": "agent",
            "before": hit["before"],
            "match": "word3-14. word3-15",
            "after": ". word3-16. word3-17. word3-18. word3-19",
        }
        assert hit["before"].endswith(" word3-12. word3-13. ")
        found = await find(viewer, "long", "line 7")
        assert [(each["role"], each["nth"]) for each in found["hits"]][:5] == [("tool", nth) for nth in range(5)]
        assert found["complete"]
        many = await find(viewer, "long", "word")
        assert (len(many["hits"]), many["complete"]) == (1_000, False)
        seqs = [each["seq"] for each in many["hits"]]
        assert seqs == sorted(seqs)
        assert (await find(viewer, "long", "Think about 99"))["hits"][0]["role"] == "thought"
        assert (await find(viewer, "long", "nowhere at all"))["hits"] == []


async def test_newer_search_in_a_session_ends_the_older(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one = await join(served, extensions=True)
        session = await one.new()
        await one.prompt(session, {"say": "a needle"})
        first = one.request("_dragoman/find", {"sessionId": session, "query": "needle"})
        assert len((await find(one, session, "a needle"))["hits"]) >= 1
        assert (await one.answer(first))["result"] == {"hits": [], "complete": False}


async def test_reader_reads_parts_and_a_stranger_does_not(tmp_path):
    async with serve(tmp_path, agent()) as served:
        one = await join(served, extensions=True)
        session, other = await one.new(), await one.new()
        await one.prompt(session, {"say": "shown"})
        reader = await join(served, only=session, extensions=True)
        opened = await load_paged(reader, session, "/work")
        entries, _ = await read_parts(asking(reader), session, opened["before"])
        assert texts_of(entries).endswith("shown")
        assert (await find(reader, session, "shown"))["hits"]
        for method in ("_dragoman/history", "_dragoman/settings", "_dragoman/find"):
            params = {"before": opened["before"], "query": "x"}
            assert "error" in await reader.ask(method, {"sessionId": other, **params})
            assert (await one.ask(method, {"sessionId": "nowhere", **params}))["error"]["code"] == -32002
        wrong = await reader.ask("_dragoman/history", {"sessionId": session, "before": "other.1"})
        assert wrong["error"]["code"] == -32602


@pytest.mark.parametrize("paged", [True, False])
async def test_other_clients_still_receive_every_byte(tmp_path, paged):
    updates = long_updates(500)
    write_long_session(tmp_path, "one", "long", updates)
    async with serve(tmp_path, agent(capabilities=RESUMING)) as served:
        viewer = await join(served)
        more = PAGED if paged else {}
        await viewer.ask("session/load", {"sessionId": "long", "cwd": CWD, "mcpServers": [], **more})
        assert replayed(viewer.lines, "long") == updates
