"""Modes and options: kept in sync, restored, and refused with a message."""

import pytest

from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from tests.assistant.coming_back import load
from tests.assistant.running import running_agent
from tests.errors import refused

KNOWS_BOOLEAN = v1.ClientCapabilities(
    session=v1.ClientSessionCapabilities(
        config_options=v1.SessionConfigOptionsCapabilities(boolean=v1.BooleanConfigOptionCapabilities())
    )
)


def values(options):
    return {option.id: option.current_value for option in options}


async def test_modes_and_options_stay_in_sync(place):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.connection.call_extension("session/set_mode", {"sessionId": session_id, "modeId": "code"})
        mode, options = client.conversation()
        assert (mode.current_mode_id, values(options.config_options)) == (
            "code",
            {"mode": "code", "model": "script:test.yaml", "sandbox": "off"},
        )
        client.updates.clear()
        params = {"sessionId": session_id, "configId": "mode", "value": "plan"}
        answer = await client.connection.call_extension("session/set_config_option", params)
        assert answer["configOptions"][0]["currentValue"] == "plan"
        mode, options = client.conversation()
        assert (mode.current_mode_id, values(options.config_options)) == (
            "plan",
            {"mode": "plan", "model": "script:test.yaml", "sandbox": "off"},
        )


async def test_settings_survive_a_load(place):
    cwd, home = place
    async with running_agent(home, capabilities=KNOWS_BOOLEAN) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        await client.connection.call_extension("session/set_mode", {"sessionId": session_id, "modeId": "plan"})
        await client.prompt(session_id, "hi")
        params = {"sessionId": session_id, "configId": "thoughts", "type": "boolean", "value": False}
        await client.connection.call_extension("session/set_config_option", params)
    async with running_agent(home, capabilities=KNOWS_BOOLEAN) as client:
        await client.initialize()
        answer = await load(client, session_id, cwd)
        assert answer.modes.current_mode_id == "plan"
        assert values(answer.config_options) == {
            "mode": "plan",
            "model": "script:test.yaml",
            "sandbox": "off",
            "thoughts": False,
        }


async def test_thoughts_can_be_hidden(place):
    cwd, home = place
    async with running_agent(home, "- - thought: hm\n  - text: a\n", capabilities=KNOWS_BOOLEAN) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        params = {"sessionId": session_id, "configId": "thoughts", "type": "boolean", "value": False}
        await client.connection.call_extension("session/set_config_option", params)
        await client.prompt(session_id, "hi")
        assert not any(isinstance(n.update, v1.AgentThoughtChunk) for n in client.updates)


@pytest.mark.parametrize(
    ("params", "path"),
    [
        ({"configId": "speed", "value": "fast"}, "params.configId"),
        ({"configId": "mode", "value": "yolo"}, "params.value"),
        ({"configId": "mode", "type": "boolean", "value": True}, "params.value"),
        ({"configId": "thoughts", "type": "boolean", "value": True}, "params.configId"),
        ({"configId": "mode"}, "params.value"),
    ],
)
async def test_invalid_setting_is_refused_with_the_valid_ones(place, params, path):
    cwd, home = place
    async with running_agent(home) as client:
        await client.initialize()
        session_id = await client.new_session(str(cwd))
        error = await refused(
            client.connection.call_extension("session/set_config_option", {"sessionId": session_id, **params})
        )
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, path)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/prompt", {"prompt": []}),
        ("session/load", {"cwd": "/", "mcpServers": []}),
        ("session/resume", {"cwd": "/"}),
        ("session/fork", {"cwd": "/"}),
        ("session/close", {}),
        ("session/set_mode", {"modeId": "ask"}),
        ("session/set_config_option", {"configId": "mode", "value": "ask"}),
    ],
)
async def test_every_method_refuses_an_unknown_session(place, method, params):
    async with running_agent(place[1]) as client:
        await client.initialize()
        error = await refused(client.connection.call_extension(method, {"sessionId": "nobody", **params}))
        assert error.code == ErrorCode.RESOURCE_NOT_FOUND
