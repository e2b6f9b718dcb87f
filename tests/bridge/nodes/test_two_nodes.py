"""Two nodes on one database: a session can be used on both, whichever node owns it."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from tests.bridge.viewers import LOADING, OPTIONS, agent, bridge_of, join, steps_text


def keeping(tmp_path, **behaviour):
    """Return an agent that every node can start and whose sessions all nodes can reach."""
    (tmp_path / "sessions").mkdir(exist_ok=True)
    return agent(capabilities=LOADING, store=str(tmp_path / "sessions"), **behaviour)


@asynccontextmanager
async def node_of(address, tmp_path, name, *specs, **changes):
    spec = specs or (keeping(tmp_path),)
    async with bridge_of(tmp_path / name, *spec, store=address, **changes) as bridge:
        yield bridge.agent()


async def test_session_survives_a_restart_and_exists_on_another_node(address, tmp_path):
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


@pytest.mark.basic
async def test_prompt_through_another_node_gets_updates_before_the_answer(address, tmp_path):
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
        assert two.sessions.by_id == {}


@pytest.mark.basic
async def test_question_is_asked_on_every_node_and_settled_once(address, tmp_path):
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


@pytest.mark.basic
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


@pytest.mark.basic
async def test_messages_stay_in_order_while_the_owner_is_looked_up(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        session = await (await join(one)).new()
        there = await join(two)
        for _ in range(3):
            prompt = there.start_prompt(session, {"cancel": True})
            there.send({"method": "session/cancel", "params": {"sessionId": session}})
            later = there.request("session/list")
            assert (await there.answer(prompt))["result"]["stopReason"] == "cancelled"
            assert "result" in await there.answer(later)
        assert two.sessions.by_id == {}


async def test_message_with_a_lone_surrogate_reaches_the_owner(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        session = await (await join(one)).new()
        there = await join(two)
        prompt = [{"type": "text", "text": steps_text({"say": "said"})}, {"type": "text", "text": "\ud83d"}]
        assert "result" in await there.ask("session/prompt", {"sessionId": session, "prompt": prompt})
        assert there.said(session) == ["said"]
        assert two.sessions.by_id == {}


async def test_unreadable_answer_reaches_the_owner(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here = await join(one)
        session = await here.new()
        there = await join(two)
        await there.load(session)
        await here.viewer.close()
        prompt = there.start_prompt(session, {"ask": OPTIONS})
        id_, deep = (await there.asked())["id"], "[" * 300 + "]" * 300
        there.send(f'{{"jsonrpc":"2.0","id":{json.dumps(id_)},"result":{deep}}}'.encode())
        assert (await there.answer(prompt))["result"]["stopReason"] == "end_turn"
        assert "nested deeper than 200 levels" in there.said(session)[-1]


@pytest.mark.basic
async def test_viewer_continues_at_its_cursor_on_another_node(address, tmp_path):
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


async def test_editor_on_another_node_does_not_see_its_own_prompt(address, tmp_path):
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


async def test_subagent_with_nul_in_its_id_affects_nothing_else(address, tmp_path, caplog):
    async with node_of(address, tmp_path, "one", agent()) as one:
        viewer = await join(one, extensions=True)
        session = await viewer.new()
        child = {"sessionUpdate": "subagent_update", "sessionId": "a\0b", "title": "Helper"}
        said = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hidden"}}
        notify = {"notify": ["session/update", {"sessionId": "a\0b", "update": said}]}
        for _ in range(2):
            assert "result" in await viewer.prompt(session, {"update": child}, notify, {"say": "on"})
        assert viewer.said() == ["on", "on"]
    assert caplog.text.count(r"subagent a\x00b is not shown") == 1


async def test_new_session_is_usable_on_another_node_at_once(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one), await join(two)
        for number in range(10):
            session = await here.new()
            if number % 2:
                assert "result" in await there.load(session)
            assert "result" in await there.prompt(session, {"say": "at once"})
            assert there.said(session) == ["at once"]


async def test_unowned_session_gets_one_owner_when_two_nodes_want_it(address, tmp_path):
    async with node_of(address, tmp_path, "before") as before:
        viewer = await join(before)
        asleep = [await viewer.new() for _ in range(6)]
    known_to_agent = [f"old{number}" for number in range(6)]
    for session in known_to_agent:
        (tmp_path / "sessions" / session).touch()
    async with node_of(address, tmp_path, "one") as one, node_of(address, tmp_path, "two") as two:
        here, there = await join(one), await join(two)
        for session in known_to_agent:
            answers = await asyncio.gather(here.load(session), there.load(session))
            assert all("result" in answer for answer in answers), answers
        for session in (*asleep, *known_to_agent):
            answers = await asyncio.gather(*(viewer.prompt(session, {"say": "x"}) for viewer in (here, there)))
            assert all("result" in answer for answer in answers), answers
            assert (session in one.sessions.by_id) != (session in two.sessions.by_id)
        for viewer in (here, there):
            for session in known_to_agent:
                await viewer.until(lambda _, viewer=viewer, session=session: viewer.said(session) == ["x", "x"])


class BrokenSession:
    """A session for a journal that fails to describe it."""

    def __init__(self, session):
        self._session = session

    def __getattr__(self, name):
        return getattr(self._session, name)

    def listed_facts(self):
        raise RuntimeError("nobody has foreseen this")


async def test_unexpected_journal_error_is_reported_and_the_session_continues(address, tmp_path):
    async with node_of(address, tmp_path, "one") as one:
        viewer = await join(one)
        session = await viewer.new()
        prompt = viewer.start_prompt(session, {"say": "begun"}, {"cancel": True})
        await viewer.until(lambda _: viewer.said() == ["begun"])
        served = one.sessions.by_id[session]
        served.history.reader = BrokenSession(served)
        served.changed()
        refused = await viewer.answer(prompt)
        assert "cannot be written (nobody has foreseen this); please report this" in refused["error"]["message"]
        assert "result" in await viewer.prompt(session, {"say": "on"})
        assert viewer.said() == ["begun", "on"]
