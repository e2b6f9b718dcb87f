"""Initialisation, capabilities, servers, options, modes, commands and questions are translated."""

import copy

import pytest

from tests.protocol.schema_instances import V1, V2
from tests.protocol.translate.conversation import (
    answer,
    call,
    text,
    through_v1,
    through_v2,
    updated,
    v1_client_v2_agent,
    v2_client_v1_agent,
)
from tests.protocol.translate.test_updates import EVERYTHING, without_nulls

INFO = {"name": "x", "version": "1"}
SELECT = {"type": "select", "name": "M", "currentValue": "a", "options": [{"value": "a", "name": "A"}]}
MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}


def without_defaults(value):
    if isinstance(value, dict):
        kept = {name: without_defaults(each) for name, each in value.items()}
        return {name: each for name, each in kept.items() if each not in (None, {}, [])}
    return [without_defaults(each) for each in value] if isinstance(value, list) else value


def v2_client(**agent_capabilities):
    talk = v2_client_v1_agent()
    talk.client_sends(call(0, "initialize", protocolVersion=2, info=INFO))
    talk.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": agent_capabilities}))
    talk.client.pop_messages(), talk.agent.pop_messages()
    return talk


def v1_client(capabilities=EVERYTHING):
    talk = v1_client_v2_agent()
    talk.client_sends(call(0, "initialize", protocolVersion=1, clientCapabilities=capabilities))
    talk.agent_sends(answer(0, {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}))
    talk.client.pop_messages(), talk.agent.pop_messages()
    return talk


def test_version_1_initialize_round_trips():
    for params in V1.instances(V1.defs["InitializeRequest"]):
        talk = through_v2().client_sends(call(0, "initialize", **params))
        expected = {**copy.deepcopy(params), "protocolVersion": 1}
        for gone in ("fs", "terminal"):
            expected.get("clientCapabilities", {}).pop(gone, None)
        assert without_defaults(talk.agent.pop_messages()[0]["params"]) == without_defaults(expected)


def test_version_2_initialize_round_trips():
    for params in V2.instances(V2.defs["InitializeRequest"]):
        talk = through_v1().client_sends(call(0, "initialize", **params))
        assert without_defaults(talk.agent.pop_messages()[0]["params"]) == without_defaults(
            {**params, "protocolVersion": 2}
        )


def test_version_1_initialize_response_round_trips():
    for result in V1.instances(V1.defs["InitializeResponse"]):
        talk = through_v2().client_sends(call(0, "initialize", protocolVersion=1))
        talk.agent_sends(answer(0, {**result, "protocolVersion": 1}))
        expected = {**copy.deepcopy(result), "protocolVersion": 1}
        expected.get("agentCapabilities", {}).get("mcpCapabilities", {}).pop("sse", None)
        assert without_defaults(talk.client.pop_messages()[0]["result"]) == without_defaults(expected)


def test_version_2_initialize_response_round_trips():
    for result in V2.instances(V2.defs["InitializeResponse"]):
        talk = through_v1().client_sends(call(0, "initialize", protocolVersion=2, info=INFO))
        talk.agent_sends(answer(0, {**result, "protocolVersion": 2}))
        assert without_defaults(talk.client.pop_messages()[0]["result"]) == without_defaults(
            {**result, "protocolVersion": 2}
        )


def test_capabilities_are_translated():
    talk = v2_client_v1_agent().client_sends(call(0, "initialize", protocolVersion=2, info=INFO))
    given = {
        "promptCapabilities": {"image": True},
        "mcpCapabilities": {"http": True, "sse": True},
        "sessionCapabilities": {"delete": {}, "list": {}},
    }
    talk.agent_sends(answer(0, {"protocolVersion": 1, "agentCapabilities": given}))
    session = talk.client.pop_messages()[0]["result"]["capabilities"]["session"]
    assert session == {"prompt": {"image": {}}, "mcp": {"stdio": {}, "http": {}}, "delete": {}}
    talk = v1_client_v2_agent().client_sends(call(0, "initialize", protocolVersion=1))
    capabilities = {"session": {"prompt": {"audio": {}}, "mcp": {"http": {}}}}
    talk.agent_sends(answer(0, {"protocolVersion": 2, "info": INFO, "capabilities": capabilities}))
    sent = talk.client.pop_messages()[0]["result"]["agentCapabilities"]
    assert sent["loadSession"] is True
    assert sent["promptCapabilities"] == {"image": False, "audio": True, "embeddedContext": False}
    assert sent["sessionCapabilities"] == {"list": {}, "resume": {}, "close": {}}


def test_agent_of_an_unexpected_version_is_refused():
    talk = v2_client_v1_agent().client_sends(call(0, "initialize", protocolVersion=2, info=INFO))
    talk.agent_sends(answer(0, {"protocolVersion": 0}))
    failure = talk.client.pop_messages()[0]["error"]
    assert (failure["code"], failure["data"]) == (-32022, {"requested": 2, "supported": [0]})


def test_login_and_logout_are_renamed():
    talk = v2_client(auth={"logout": {}})
    talk.client_sends(call(1, "auth/login", methodId="m"), call(2, "auth/logout"))
    assert [each["method"] for each in talk.agent.pop_messages()] == ["authenticate", "logout"]
    talk.agent_sends(answer(1, None), answer(2, {}))
    assert [each["result"] for each in talk.client.pop_messages()] == [{}, {}]
    talk = v1_client().client_sends(call(1, "authenticate", methodId="m"), call(2, "logout"))
    assert [each["method"] for each in talk.agent.pop_messages()] == ["auth/login", "auth/logout"]
    talk = v2_client().client_sends(call(2, "auth/logout"))
    assert talk.client.pop_messages()[0]["error"]["code"] == -32601


def test_stdio_servers_get_and_lose_their_type():
    stdio = {"name": "a", "command": "/b"}
    talk = v2_client().client_sends(call(1, "session/new", cwd="/", mcpServers=[{"type": "stdio", **stdio}]))
    assert talk.agent.pop_messages()[0]["params"]["mcpServers"] == [{**stdio, "args": [], "env": []}]
    talk = v1_client().client_sends(call(1, "session/new", cwd="/", mcpServers=[{**stdio, "args": [], "env": []}]))
    assert talk.agent.pop_messages()[0]["params"]["mcpServers"] == [{"type": "stdio", **stdio, "args": [], "env": []}]


@pytest.mark.parametrize(
    ("talk", "server"),
    [
        (v1_client, {"type": "sse", "name": "a", "url": "http://a", "headers": []}),
        (v2_client, {"type": "_pigeon", "name": "a"}),
    ],
)
def test_untranslatable_server_is_refused_with_its_path(talk, server):
    talk = talk().client_sends(call(1, "session/new", cwd="/", mcpServers=[server]))
    failure = talk.client.pop_messages()[0]["error"]
    assert (failure["code"], failure["data"]["path"]) == (-32602, "params.mcpServers[0].type")
    assert talk.agent.pop_messages() == []


def test_modes_are_a_config_option_that_sets_the_mode():
    talk = v2_client().client_sends(call(1, "session/new", cwd="/"))
    talk.agent_sends(answer(1, {"sessionId": "s", "modes": MODES, "configOptions": [{"id": "m", **SELECT}]}))
    mode, model = talk.client.pop_messages()[0]["result"]["configOptions"]
    assert (mode["category"], mode["currentValue"], model["configId"]) == ("mode", "ask", "m")
    talk.agent.pop_messages()
    chosen = {"sessionId": "s", "configId": mode["configId"], "type": "id", "value": "code"}
    talk.client_sends(call(2, "session/set_config_option", **chosen))
    assert talk.agent.pop_messages()[0]["params"] == {"sessionId": "s", "modeId": "code"}
    talk.agent_sends(answer(2, {}))
    assert talk.client.pop_messages()[0]["result"]["configOptions"][0]["currentValue"] == "code"


@pytest.mark.parametrize("kind", [{"type": "_number"}, {"type": "number"}, {}])
def test_unknown_type_of_option_value_is_refused(kind):
    talk = v2_client()
    for option in ("m", "mode"):
        talk.client_sends(call(2, "session/set_config_option", sessionId="s", configId=option, value="x", **kind))
        failure = talk.client.pop_messages()[0]["error"]
        assert (failure["code"], failure["data"]["path"]) == (-32602, "params.type")
    assert talk.agent.pop_messages() == []


def test_mode_option_becomes_modes():
    option = {
        "configId": "perm",
        "type": "select",
        "category": "mode",
        "name": "Mode",
        "currentValue": "ask",
        "options": [
            {"groupId": "g", "name": "G", "options": [{"value": "ask", "name": "Ask"}, {"value": "c", "name": "C"}]}
        ],
    }
    talk = v1_client().client_sends(call(1, "session/new", cwd="/", mcpServers=[]))
    talk.agent_sends(answer(1, {"sessionId": "s", "configOptions": [option]}))
    sent = talk.client.pop_messages()[0]["result"]
    assert sent["modes"] == {
        "currentModeId": "ask",
        "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "c", "name": "C"}],
    }
    assert sent["configOptions"][0]["id"] == "perm"
    assert sent["configOptions"][0]["options"][0]["group"] == "g"
    talk.agent.pop_messages()
    talk.client_sends(call(2, "session/set_mode", sessionId="s", modeId="c"))
    assert talk.agent.pop_messages()[0]["params"] == {"sessionId": "s", "configId": "perm", "type": "id", "value": "c"}
    talk.agent_sends(answer(2, {"configOptions": [{**option, "currentValue": "c"}]}))
    assert talk.client.pop_messages()[0]["result"] == {}
    talk.agent_sends(updated(sessionUpdate="config_option_update", configOptions=[option]))
    mode, options = (each["params"]["update"] for each in talk.client.pop_messages())
    assert (mode["currentModeId"], options["configOptions"][0]["currentValue"]) == ("ask", "ask")


def test_mode_cannot_be_set_without_a_mode_option():
    talk = v1_client().client_sends(call(2, "session/set_mode", sessionId="s", modeId="c"))
    assert talk.client.pop_messages()[0]["error"]["code"] == -32601


def test_boolean_becomes_a_choice_for_clients_without_booleans():
    option = {"configId": "b", "type": "boolean", "name": "B", "currentValue": True}
    talk = v1_client({}).client_sends(call(1, "session/new", cwd="/", mcpServers=[]))
    talk.agent_sends(answer(1, {"sessionId": "s", "configOptions": [option]}))
    (sent,) = talk.client.pop_messages()[0]["result"]["configOptions"]
    assert (sent["type"], sent["currentValue"]) == ("select", "true")
    talk.agent.pop_messages()
    talk.client_sends(call(2, "session/set_config_option", sessionId="s", configId="b", value="false"))
    sent = talk.agent.pop_messages()[0]["params"]
    assert (sent["type"], sent["value"]) == ("boolean", False)


def test_commands_in_the_response_become_an_update():
    commands = [{"type": "command", "name": "go", "description": "d", "input": {"type": "text", "hint": "h"}}]
    talk = v1_client().client_sends(call(1, "session/new", cwd="/", mcpServers=[]))
    talk.agent_sends(answer(1, {"sessionId": "s", "availableCommands": commands}))
    response, sent = talk.client.pop_messages()
    assert response["result"] == {"sessionId": "s"}
    assert sent["params"]["update"]["availableCommands"] == [{"name": "go", "description": "d", "input": {"hint": "h"}}]


@pytest.mark.parametrize("name", ["NewSessionRequest", "ForkSessionRequest", "ResumeSessionRequest"])
def test_version_2_setup_round_trips(name):
    method = V2.defs[name]["x-method"]
    for params in V2.instances(V2.defs[name]):
        if any(each.get("type") == "_other" for each in params.get("mcpServers", [])) or params.get("replayFrom"):
            continue
        talk = through_v1().client_sends(call(0, "initialize", protocolVersion=2, info=INFO))
        talk.agent_sends(answer(0, {"protocolVersion": 2, "info": INFO, "capabilities": {"session": {}}}))
        talk.agent.pop_messages()
        talk.client_sends(call(1, method, **params))
        assert without_defaults(talk.agent.pop_messages()[0]["params"]) == without_defaults(params)


def test_version_1_permission_request_round_trips():
    for params in V1.instances(V1.defs["RequestPermissionRequest"]):
        talk = through_v2()
        talk.client_sends(call(0, "initialize", protocolVersion=1)).agent_sends(answer(0, {"protocolVersion": 1}))
        talk.client.pop_messages()
        talk.agent_sends(call(7, "session/request_permission", **params))
        assert without_nulls(talk.client.pop_messages()[0]["params"]) == without_nulls(params)


def test_version_2_permission_request_round_trips():
    for params in V2.instances(V2.defs["RequestPermissionRequest"]):
        talk = through_v1()
        talk.agent_sends(call(7, "session/request_permission", **params))
        assert without_defaults(talk.client.pop_messages()[0]["params"]) == without_defaults(params)


def test_command_to_approve_is_shown_completely():
    talk = v1_client()
    subject = {"type": "command", "command": "rm -r x", "cwd": "/w"}
    options = [{"optionId": "a", "name": "A", "kind": "allow_once"}, {"optionId": "b", "name": "B", "kind": "_maybe"}]
    talk.agent_sends(
        call(7, "session/request_permission", sessionId="s", title="Run?", subject=subject, options=options)
    )
    asked = talk.client.pop_messages()[0]["params"]
    assert asked["toolCall"]["content"][0]["content"]["text"] == "$ rm -r x\n(in /w)"
    assert [each["optionId"] for each in asked["options"]] == ["a"]


@pytest.mark.parametrize("version", [1, 2])
def test_elicitation_round_trips(version):
    schema = {1: V1, 2: V2}[version]
    for params in schema.instances(schema.defs["CreateElicitationRequest"]):
        if params.get("requestId", "") is None:
            continue  # version 2 has no requests with the id null
        talk = through_v2() if version == 1 else through_v1()
        talk.agent_sends(call(7, "elicitation/create", **params))
        sent = talk.client.pop_messages()[0]["params"]
        for each in (sent, params):
            each.get("requestedSchema", {}).pop("type", None)
        assert without_defaults(sent) == without_defaults(params)


def test_extensions_pass_unchanged():
    for talk in (v2_client(), v1_client()):
        extension = call(5, "_mine/ask", anything={"goes": [1, None]})
        talk.client_sends(extension)
        assert talk.agent.pop_messages() == [extension]
        talk.agent_sends(answer(5, {"any": 1}))
        assert talk.client.messages == [answer(5, {"any": 1})]


def test_terminals_of_version_2_are_shown_as_text_of_their_tool_call():
    talk = v1_client()
    item = {"type": "terminal", "terminalId": "x"}
    talk.agent_sends(updated(sessionUpdate="tool_call_update", toolCallId="t", title="Run", content=[item]))
    talk.agent_sends(updated(sessionUpdate="terminal_update", terminalId="x", command="ls"))
    talk.agent_sends(updated(sessionUpdate="terminal_output_chunk", terminalId="x", data="YQo="))
    talk.agent_sends(updated(sessionUpdate="terminal_update", terminalId="x", exitStatus={"exitCode": 0}))
    last = talk.client.pop_messages()[-1]["params"]["update"]
    assert last["content"][0]["content"] == text("```\n$ ls\na\n```\n(exit code 0)")


def test_unsupported_updates_become_thoughts():
    talk = v1_client({})
    talk.agent_sends(updated(sessionUpdate="notice", severity="info", title="Retrying", description="in 2 s"))
    thought = talk.client.pop_messages()[0]["params"]["update"]
    assert (thought["sessionUpdate"], thought["content"]["text"]) == ("agent_thought_chunk", "Retrying\nin 2 s\n\n")
