"""A prompt with a key that is sent again gets its answer, also after its session has left memory."""

import time

import pytest

from tests.bridge.versions.pairs import agent_v2, join_v2
from tests.bridge.viewers import LOADING, agent, join, serve, steps_text
from tests.waiting import until


def keyed(session, *steps):
    prompt = [{"type": "text", "text": steps_text(*steps)}]
    return {"sessionId": session, "prompt": prompt, "_meta": {"dragoman": {"key": "k"}}}


def spec_of(version, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    if version == 2:
        return agent_v2(store=str(store))
    return agent(capabilities=LOADING, store=str(store), log=str(tmp_path / "log"))


def opened(served):
    return sum(figure.value for figure in served.measure() if figure.name == "dragoman_sessions")


async def crash(served, viewer):
    """Let the agent exit, and wait until it runs again."""
    session = (await viewer.ask("session/new", {"cwd": "/work", "mcpServers": []}))["result"]["sessionId"]
    starts = served.router.inspector.traffic.starts
    viewer.start_prompt(session, {"exit": 3})
    await until(lambda: served.router.inspector.traffic.starts > starts and served.host.is_ready)
    await viewer.prompt(session)  # the agent has it again, so that the close ends its phase
    await viewer.ask("session/close", {"sessionId": session})


async def released(served, viewer):
    """Sweep until no session is in memory."""
    while opened(served):
        await served.sweep(time.monotonic())
        await viewer.ask("_echo")


@pytest.mark.parametrize("joins", [join, join_v2])
@pytest.mark.parametrize("version", [1, 2])
async def test_released_session_repeats_the_answer(tmp_path, version, joins):
    async with serve(tmp_path / "home", spec_of(version, tmp_path), backoff_min_s=0.01) as served:
        one, other = await joins(served), await join(served)
        opened_by_one = await one.ask("session/new", {"cwd": "/work", "mcpServers": []})
        params = keyed(opened_by_one["result"]["sessionId"], {"say": "Done"})
        answered = await one.ask("session/prompt", params)
        assert "result" in answered
        await until(lambda: not served.host.pending)
        await one.viewer.close()
        await crash(served, other)
        await released(served, other)
        two = await joins(served)
        again = await two.ask("session/prompt", params)
        assert again.get("result") == answered["result"]
        await two.ask("_echo")
        assert not two.said()
