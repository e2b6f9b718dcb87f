"""Two nodes on one database: a session is used on either, whoever owns it."""

import json
from contextlib import asynccontextmanager

from tests.bridge.viewers import LOADING, OPTIONS, agent, bridge_of, join


def keeping(tmp_path, **behaviour):
    """Make an agent that any node can start, and that has its sessions where all nodes reach them."""
    (tmp_path / "sessions").mkdir(exist_ok=True)
    return agent(capabilities=LOADING, store=str(tmp_path / "sessions"), **behaviour)


@asynccontextmanager
async def node_of(address, tmp_path, name, *specs, **changes):
    spec = specs or (keeping(tmp_path),)
    async with bridge_of(tmp_path / name, *spec, store=address, **changes) as bridge:
        yield bridge.agent()


async def test_a_session_is_there_after_a_restart_and_on_another_node(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        viewer = await join(one, extensions=True)
        session = await viewer.new()
        await viewer.prompt(session, {"say": "first"}, {"say": "second"})
        cursor = viewer.seen[-1]
        assert viewer.said(session) == ["first", "second"], cursor
    async with node_of(address, tmp_path, "two") as two:
        other = await join(two, extensions=True)
        listed = (await other.ask("session/list"))["result"]["sessions"]
        assert [each["sessionId"] for each in listed] == [session]
        await other.load(session)
        assert other.said(session) == ["first", "second"]
        await other.prompt(session, {"say": "third"})
        assert other.said(session)[-1:] == ["third"]


async def test_a_viewer_of_another_node_prompts_and_gets_all_updates_before_the_answer(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        await there.load(session)
        answer = await there.prompt(session, {"flood": 500})
        assert answer["result"]["stopReason"] == "end_turn"
        assert there.said(session) == [str(number) for number in range(500)]
        assert there.seen.index(answer) > there.seen.index(
            [message for message in there.seen if message.get("method") == "session/update"][-1]
        )
        await here.announced(session, lambda described: described["viewers"] == 2)
        assert two.registry.sessions == {}


async def test_a_question_is_asked_on_every_node_and_settled_once(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        await there.load(session)
        prompt = here.start_prompt(session, {"ask": OPTIONS})
        asked_there, asked_here = await there.asked(), await here.asked()
        there.choose(asked_there, "no")
        assert (await here.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert '"optionId": "no"' in here.said(session)[-1]
        settled = await here.until(lambda message: message.get("method") == "_dragoman/settled")
        assert settled["params"]["requestId"] == asked_here["id"]
        here.choose(asked_here, "yes")  # too late
        await here.prompt(session, {"say": "on"})
        assert here.said(session)[-1] == "on"


async def test_cancels_and_settings_reach_the_owner(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two, extensions=True)
        session = await here.new()
        await there.load(session)
        prompt = here.start_prompt(session, {"say": "begun"}, {"cancel": True})
        await there.until(lambda message: '"text": "begun"' in json.dumps(message))
        there.send({"method": "session/cancel", "params": {"sessionId": session}})
        assert (await here.answer(prompt))["result"]["stopReason"] == "cancelled"
        titled = await there.ask("session/set_title", {"sessionId": session, "title": "Ours"})
        assert titled["result"]["title"] == "Ours"
        await here.announced(session, lambda described: described["title"] == "Ours")
        await there.announced(session, lambda described: described["title"] == "Ours")


async def test_a_viewer_goes_on_at_its_cursor_on_another_node(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here = await join(one, extensions=True)
        session = await here.new()
        await here.prompt(session, {"say": "seen"})
        last = [message for message in here.seen if message.get("method") == "session/update"][-1]
        cursor = last["params"]["_meta"]["dragoman"]["cursor"]
        await here.viewer.close()
        there = await join(two, extensions=True)
        loaded = await there.load(session, after=cursor)
        assert "error" not in loaded
        assert there.said(session) == []
        await there.prompt(session, {"say": "unseen"})
        assert there.said(session) == ["unseen"]


async def test_an_editor_on_another_node_is_not_shown_its_own_prompt(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one, extensions=True), await join(two)
        session = await here.new()
        await there.load(session)
        for number in range(20):
            await there.prompt(session, {"say": f"{number}"})
        kinds = {update["sessionUpdate"] for update in there.updates(session)}
        assert "user_message_chunk" not in kinds
        assert there.said(session) == [f"{number}" for number in range(20)]
        await here.until(lambda message: '"19"' in json.dumps(message))
        users = [update for update in here.updates(session) if update["sessionUpdate"] == "user_message_chunk"]
        assert len(users) == 20


async def test_nul_is_refused_in_an_id_and_kept_out_of_lists(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        viewer = await join(one, extensions=True)
        refused = await viewer.load("no\0thing")
        assert "ids without NUL" in refused["error"]["message"], refused
        session = await viewer.new()
        title = {"update": {"sessionUpdate": "session_info_update", "title": "a\0b"}}
        assert "result" in await viewer.prompt(session, title, {"say": "on"})
        assert viewer.said(session) == ["on"]
    async with node_of(address, tmp_path, "two") as two:
        (listed,) = (await (await join(two)).ask("session/list"))["result"]["sessions"]
        assert (listed["sessionId"], listed["title"]) == (session, "a\N{REPLACEMENT CHARACTER}b")
