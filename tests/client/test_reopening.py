"""Earlier sessions are reopened with a method that the agent really supports."""

import pytest

from dragoman.client import connect_sync
from dragoman.client.errors import MissingCapabilityError
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
async def test_session_is_opened_with_a_supported_method(capabilities, script, replay, history):
    async with agent_of(raw(script, [chunk("now"), END], capabilities=capabilities)) as agent:
        session = await agent.reopen_session("s", "/", replay=replay)
        assert text(session.history) == history
        assert await session.ask("go") == "now"


async def test_agent_without_both_methods_raises_its_error():
    script = {"session/load": NOT_ROUTED, "session/resume": NOT_ROUTED}
    async with agent_of(raw(script, capabilities=BOTH)) as agent:
        with pytest.raises(RemoteError) as caught:
            await agent.reopen_session("s", "/")
    assert caught.value.code == ErrorCode.METHOD_NOT_FOUND


async def test_other_errors_do_not_try_the_other_method():
    unknown = [[{"error": {"code": -32002, "message": "Resource not found"}}]]
    async with agent_of(raw({"session/resume": unknown}, capabilities=BOTH)) as agent:
        with pytest.raises(RemoteError) as caught:
            await agent.reopen_session("s", "/")
    assert caught.value.method == "session/resume"


async def test_agent_that_advertises_neither_gets_no_request():
    async with agent_of(raw(capabilities={})) as agent:
        with pytest.raises(MissingCapabilityError):
            await agent.reopen_session("s", "/")


def test_synchronous_client_reopens_sessions():
    command = raw({"session/load": LOADED, "session/resume": NOT_ROUTED}, [chunk("now"), END], capabilities=BOTH)
    with connect_sync(command) as agent:
        assert agent.reopen_session("s", "/").ask("go") == "now"
