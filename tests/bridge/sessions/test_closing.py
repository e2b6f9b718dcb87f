"""Closed sessions leave memory and can be opened again. Answered prompts retain nothing of their viewers."""

import gc
import json
import time
import weakref

import pytest

from dragoman.bridge import served_agent
from dragoman.protocol.translate.session_for_v1 import SessionForV1Client
from tests.bridge.versions.pairs import agent_v2
from tests.bridge.viewers import A_DAY_S, LOADING, GatedDisk, agent, join, serve, steps_text
from tests.waiting import until


def open_sessions(served):
    return sum(figure.value for figure in served.measure() if figure.name == "dragoman_sessions")


async def swept(served, viewer):
    """Sweep until no session is in memory. A session stays until it is written."""
    while open_sessions(served):
        await served.sweep(time.monotonic())
        await viewer.ask("_echo")


async def close(viewer, session):
    assert "result" in await viewer.ask("session/close", {"sessionId": session})


def storing(tmp_path, **behaviour):
    store = tmp_path / "store"
    store.mkdir()
    return agent(capabilities=LOADING, store=str(store), **behaviour)


async def test_closed_session_does_not_count_against_the_limit(tmp_path):
    async with serve(tmp_path, max_sessions=2) as served:
        one = await join(served)
        for _ in range(5):
            await close(one, await one.new())
        kept = [await one.new(), await one.new()]
        refused = await one.ask("session/new", {"cwd": "/work"})
        assert "close or delete some" in refused["error"]["data"]
        await close(one, kept[0])
        await one.new()


@pytest.mark.parametrize("extensions", [False, True])
async def test_closed_session_leaves_memory_and_reopens_completely(tmp_path, extensions):
    async with serve(tmp_path / "home", storing(tmp_path)) as served:
        one = await join(served, extensions=extensions)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await close(one, session)
        if extensions:  # a page shows the session until it sends leave
            await served.sweep(time.monotonic())
            assert open_sessions(served) == 1
            one.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        await swept(served, one)
        listed = (await one.ask("session/list"))["result"]["sessions"]
        assert [each["sessionId"] for each in listed] == [session]
        one.forget()
        assert "result" in await one.load(session)
        assert one.said() == ["before"]
        await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "after"]


async def test_closed_session_that_left_memory_accepts_prompts_only_once_opened(tmp_path):
    async with serve(tmp_path / "home", storing(tmp_path)) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await close(one, session)
        await swept(served, one)
        refused = await one.prompt(session, {"say": "never"})
        assert "open it again" in refused["error"]["data"]
        await one.load(session)
        await one.prompt(session, {"say": "after"})
        assert one.said() == ["before", "before", "after"]


async def test_closed_session_leaves_memory_before_the_next_sweep(tmp_path, monkeypatch):
    monkeypatch.setattr(served_agent, "MAX_PAUSE_S", A_DAY_S)
    async with serve(tmp_path / "home", storing(tmp_path), idle_stop_s=A_DAY_S, stall_s=A_DAY_S) as served:
        one = await join(served)
        for _ in range(3):
            session = await one.new()
            await one.prompt(session, {"say": "before"})
            await close(one, session)
        await one.ask("_echo")
        await until(lambda: not open_sessions(served))


async def test_session_that_another_viewer_has_open_stays(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        await close(one, session)
        await one.ask("_echo")
        await served.sweep(time.monotonic())
        assert open_sessions(served) == 1
        await two.viewer.close()
        await swept(served, one)


async def test_session_without_viewers_leaves_memory_when_the_agent_has_ended(tmp_path):
    async with serve(tmp_path / "home", storing(tmp_path), backoff_min_s=0.01) as served:
        one, two = await join(served), await join(served)
        left, open_one = await one.new(), await two.new()
        await one.prompt(left, {"say": "before"})
        await one.viewer.close()
        assert "error" in await two.prompt(open_one, {"exit": 3})
        await until(lambda: served.host.is_ready)
        await two.ask("_echo")
        await served.sweep(time.monotonic())
        assert open_sessions(served) == 1
        await two.load(left)
        assert two.said(left) == ["before"]
        assert "result" in await two.prompt(left, {"say": "after"})
        assert two.said(left) == ["before", "after"]


@pytest.mark.parametrize("method", ["session/prompt", "session/set_mode"])
async def test_request_opens_a_session_that_left_memory(tmp_path, method):
    spec = storing(tmp_path, log=str(tmp_path / "log"))
    async with serve(tmp_path / "home", spec, backoff_min_s=0.01) as served:
        one, two = await join(served), await join(served)
        session, other = await one.new(), await two.new()
        await one.prompt(session, {"say": "before"})
        await one.viewer.close()
        assert "error" in await two.prompt(other, {"exit": 3})
        await two.prompt(other)  # the agent has it again, so that the close ends its phase
        await close(two, other)
        await swept(served, two)
        prompt = [{"type": "text", "text": steps_text({"say": "after"})}]
        assert "result" in await two.ask(method, {"sessionId": session, "prompt": prompt, "modeId": "code"})
        sent = [json.loads(line)["method"] for line in (tmp_path / "log").read_text().splitlines()]
        assert sent[-2:] == ["session/load", method]
        three = await join(served)
        await three.load(session)
        assert three.said() == (["before", "after"] if method == "session/prompt" else ["before"])


async def test_prompt_to_a_session_that_left_memory_can_be_cancelled(tmp_path):
    spec = storing(tmp_path, log=str(tmp_path / "log"))
    disk = GatedDisk()
    async with serve(tmp_path / "home", spec) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
    async with serve(tmp_path / "home", spec, disk=disk) as served:
        one = await join(served)
        disk.shut()
        first = one.start_prompt(session, {"say": "first"})
        await until(lambda: disk.waited == 1)
        one.send({"method": "session/cancel", "params": {"sessionId": session}})
        second = one.start_prompt(session, {"say": "second"})
        one.send({"method": "$/cancel_request", "params": {"requestId": second}})
        disk.open_gate()
        assert (await one.answer(first))["result"] == {"stopReason": "cancelled"}
        assert (await one.answer(second))["error"]["code"] == -32800
        assert "result" in await one.prompt(session, {"say": "third"})
        assert one.said()[-1] == "third"
        assert '\\"first\\"' not in (tmp_path / "log").read_text()


async def test_session_that_the_agent_lost_for_good_leaves_memory_and_can_be_read(tmp_path):
    async with serve(tmp_path, agent(), backoff_min_s=0.01) as served:
        one, two = await join(served, extensions=True), await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        assert "error" in await one.prompt(session, {"exit": 3})
        await one.announced(session, lambda news: news["state"] == "gone")
        await one.viewer.close()
        await swept(served, two)
        await two.load(session)
        assert two.said(session) == ["before"]
        refused = await two.prompt(session, {"say": "after"})
        assert "is read-only" in refused["error"]["data"]


async def test_fork_of_a_released_session_has_its_history(tmp_path):
    async with serve(tmp_path / "home", storing(tmp_path)) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "of the parent"})
        await close(one, session)
        await swept(served, one)
        fork = (await one.ask("session/fork", {"sessionId": session, "cwd": "/work"}))["result"]["sessionId"]
        two = await join(served)
        await two.load(fork)
        assert two.said() == ["of the parent"]


async def test_answered_prompt_with_a_key_retains_no_viewer(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served), await join(served)
        session = await one.new()
        await two.load(session)
        keyed = {
            "sessionId": session,
            "prompt": [{"type": "text", "text": steps_text({"say": "Done"})}],
            "_meta": {"dragoman": {"key": "k"}},
        }
        assert "result" in await one.ask("session/prompt", keyed)
        left = weakref.ref(one.viewer)
        await one.viewer.close()
        one.viewer = one.stream = None
        await two.ask("_echo")
        await until(lambda: gc.collect() >= 0 and left() is None)
        again = await two.ask("session/prompt", keyed)
        assert again["result"] == {"stopReason": "end_turn"}
        assert two.said() == ["Done"]


def translations():
    return [each for each in gc.get_objects() if isinstance(each, SessionForV1Client)]


async def test_left_sessions_keep_no_translation(tmp_path):
    async with serve(tmp_path, agent_v2()) as served:
        one = await join(served, extensions=True)
        others = translations()
        sessions = [await one.new() for _ in range(3)]
        for session in sessions:
            await one.prompt(session, {"say": "hi"})
        made = [weakref.ref(each) for each in translations() if each not in others]
        assert made
        for session in sessions:
            one.send({"method": "_dragoman/leave", "params": {"sessionId": session}})
        await one.ask("_echo")
        await until(lambda: gc.collect() >= 0 and not any(each() for each in made))


async def test_released_terminal_gives_its_id_back(tmp_path):
    async with serve(tmp_path) as served:
        one, two = await join(served, terminal=True), await join(served, terminal=True)
        session = await one.new()
        await two.load(session)
        for viewer in (one, two):
            steps = (
                {"request": ["terminal/create", {"command": "true"}]},
                {"request": ["terminal/release", {"terminalId": "t1"}]},
            )
            turn = viewer.start_prompt(session, *steps)
            viewer.reply(await viewer.asked("terminal/create"), {"terminalId": "t1"})
            viewer.reply(await viewer.asked("terminal/release"), {})
            await viewer.answer(turn)
        await two.until(lambda _: sum("terminalId" in text for text in two.said()) == 2)
        assert [text for text in two.said() if "terminalId" in text] == 2 * ['{"result": {"terminalId": "t1"}}']


async def test_session_loaded_again_by_the_viewer_that_closed_it_stays_open(tmp_path):
    async with serve(tmp_path / "home", storing(tmp_path)) as served:
        one = await join(served)
        session = await one.new()
        await one.prompt(session, {"say": "before"})
        await close(one, session)
        assert "result" in await one.load(session)
        await one.ask("_echo")
        await served.sweep(time.monotonic())
        assert served.describe_session(session)["viewers"] == 1


async def test_prompt_queue_outlasts_the_pages_and_the_agent(tmp_path):
    async with serve(tmp_path / "home", storing(tmp_path), backoff_min_s=0.01) as served:
        page, other = await join(served, extensions=True), await join(served)
        session = await page.new()
        turn = page.start_prompt(session, {"until": str(tmp_path / "go")}, {"exit": 3})
        queued = [{"type": "text", "text": steps_text({"say": "queued"})}]
        mark = {"dragoman": {"queue": "one"}}
        page.request("session/prompt", {"sessionId": session, "prompt": queued, "_meta": mark})
        await page.until(lambda message: message.get("method") == "_dragoman/queue")
        (tmp_path / "go").touch()
        assert "error" in await page.answer(turn)
        await page.viewer.close()
        await until(lambda: served.host.is_ready)
        await other.ask("_echo")
        await served.sweep(time.monotonic())
        again = await join(served, extensions=True)
        await again.load(session)
        again.send({"id": "resume", "method": "_dragoman/queue/resume", "params": {"sessionId": session}})
        await again.until(lambda message: again.said(session) == ["queued"])
