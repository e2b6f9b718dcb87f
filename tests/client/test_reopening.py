"""Sessions that there were before are opened in whichever way the agent can, whatever it advertised."""

import pytest

from dragoman.client import MissingCapability, connect_sync
from dragoman.errors import ErrorCode, RemoteError
from tests.client.driving import END, agent_of, chunk, text
from tests.commands import raw

NOT_ROUTED = [[{"error": {"code": -32601, "message": '"Method not found": x', "data": {"method": "x"}}}]]
LOADED = [[chunk("before"), {"result": {}}]]
BOTH = {"loadSession": True, "sessionCapabilities": {"resume": {}}}
LOAD = {"loadSession": True}
RESUME = {"sessionCapabilities": {"resume": {}}}


@pytest.mark.parametrize(
    ("capabilities", "script", "replay", "history"),
    [
        (BOTH, {"session/load": LOADED}, True, "before"),
        (BOTH, {"session/load": LOADED}, False, ""),
        (LOAD, {"session/load": LOADED}, False, "before"),
        (RESUME, {"session/load": NOT_ROUTED}, True, ""),
        (BOTH, {"session/load": LOADED, "session/resume": NOT_ROUTED}, False, "before"),
        (BOTH, {"session/load": NOT_ROUTED}, True, ""),
    ],
)
async def test_a_session_is_opened_in_the_way_that_the_agent_has(capabilities, script, replay, history):
    async with agent_of(raw(script, [chunk("now"), END], capabilities=capabilities)) as agent:
        session = await agent.reopen_session("s", "/", replay=replay)
        assert text(session.history) == history
        assert await session.ask("go") == "now"


async def test_an_agent_that_routes_neither_is_told_of_as_it_answered():
    script = {"session/load": NOT_ROUTED, "session/resume": NOT_ROUTED}
    async with agent_of(raw(script, capabilities=BOTH)) as agent:
        with pytest.raises(RemoteError) as caught:
            await agent.reopen_session("s", "/")
    assert caught.value.code == ErrorCode.METHOD_NOT_FOUND


async def test_another_error_is_no_reason_to_try_the_other_way():
    unknown = [[{"error": {"code": -32002, "message": "Resource not found"}}]]
    async with agent_of(raw({"session/resume": unknown}, capabilities=BOTH)) as agent:
        with pytest.raises(RemoteError) as caught:
            await agent.reopen_session("s", "/")
    assert caught.value.method == "session/resume"


async def test_an_agent_that_advertises_neither_is_not_asked():
    async with agent_of(raw(capabilities={})) as agent:
        with pytest.raises(MissingCapability):
            await agent.reopen_session("s", "/")


def test_without_async_it_is_the_same():
    command = raw({"session/load": LOADED, "session/resume": NOT_ROUTED}, [chunk("now"), END], capabilities=BOTH)
    with connect_sync(command) as agent:
        assert agent.reopen_session("s", "/").ask("go") == "now"
