"""Invalid requests are refused before they are sent. The agent would list them in `said` otherwise."""

import os
import re
import sys
from pathlib import Path

import pytest

from dragoman.client.errors import InvalidDirectoryError, MissingCapabilityError, NotOfferedError, SessionClosedError
from dragoman.protocol import v1
from tests.client.driving import END, agent_of, chunk
from tests.commands import raw

HTTP = v1.McpServerHttp(name="web", url="https://example.org/mcp", headers=[])
SSE = v1.McpServerSse(name="old", url="https://example.org/sse", headers=[])
ACP = v1.McpServerAcp(name="ours", server_id="1")
STDIO = v1.McpServerStdio(name="time", command="/bin/time-server", args=[], env=[])
IMAGE = v1.ImageContent(data="", mime_type="image/png")
AUDIO = v1.AudioContent(data="", mime_type="audio/wav")
EMBEDDED = v1.EmbeddedResource(resource=v1.TextResourceContents(text="a", uri="file:///a"))

EVERYTHING = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": True, "acp": True},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "additionalDirectories": {},
        "fork": {},
        "resume": {},
        "close": {},
    },
    "auth": {"logout": {}},
}

FATAL = [[{"exit": 9, "stderr": "this should not have been sent"}]]


async def list_all(agent):
    return [info async for info in agent.list_sessions()]


CALLS = {
    "loadSession": lambda agent: agent.load_session("x", "/"),
    "sessionCapabilities.resume": lambda agent: agent.resume_session("x", "/"),
    "sessionCapabilities.list": list_all,
    "sessionCapabilities.delete": lambda agent: agent.delete("x"),
    "sessionCapabilities.fork": lambda agent: agent.fork("x", "/"),
    "sessionCapabilities.close": lambda agent: agent.close("x"),
    "auth.logout": lambda agent: agent.logout(),
    "mcpCapabilities.http": lambda agent: agent.new_session("/", mcp_servers=[STDIO, HTTP]),
    "mcpCapabilities.sse": lambda agent: agent.new_session("/", mcp_servers=[SSE]),
    "mcpCapabilities.acp": lambda agent: agent.new_session("/", mcp_servers=[ACP]),
    "sessionCapabilities.additionalDirectories": lambda agent: agent.new_session("/", additional_directories=["/tmp"]),
}
METHODS = {
    "session/load": FATAL,
    "session/resume": FATAL,
    "session/list": FATAL,
    "session/delete": FATAL,
    "session/fork": FATAL,
    "session/close": FATAL,
    "logout": FATAL,
}
BLOCKS = {
    "promptCapabilities.image": IMAGE,
    "promptCapabilities.audio": AUDIO,
    "promptCapabilities.embeddedContext": EMBEDDED,
}


@pytest.mark.parametrize("capability", CALLS)
async def test_missing_capability_is_named_in_the_error(capability):
    async with agent_of(raw({**METHODS, "session/new": FATAL}, capabilities={})) as agent:
        with pytest.raises(MissingCapabilityError, match=re.escape(capability)) as caught:
            await CALLS[capability](agent)
        assert caught.value.capability == f"agentCapabilities.{capability}"


@pytest.mark.parametrize("capability", BLOCKS)
async def test_blocks_that_the_agent_cannot_read_are_refused(capability):
    async with agent_of(raw({}, [{"exit": 9}], capabilities={})) as agent:
        session = await agent.new_session("/")
        with pytest.raises(MissingCapabilityError, match=re.escape(capability)):
            session.prompt(["look:", BLOCKS[capability]])


@pytest.mark.parametrize("capability", CALLS)
async def test_supported_requests_are_sent(capability):
    answer = {"result": {"sessionId": "x", "sessions": []}}
    script = {method: [[answer]] for method in METHODS} | {"session/new": [[answer]]}
    async with agent_of(raw(script, capabilities=EVERYTHING)) as agent:
        await CALLS[capability](agent)


async def test_every_block_is_sent_to_an_agent_that_can_read_it():
    link = v1.ResourceLink(name="a", uri="file:///a")
    async with agent_of(raw({}, [chunk("seen"), END], capabilities=EVERYTHING)) as agent:
        session = await agent.new_session("/")
        assert await session.ask(["look:", IMAGE, AUDIO, EMBEDDED, link]) == "seen"


@pytest.mark.parametrize("cwd", ["~/project", "~", "", "a\0b"])
async def test_directory_with_a_tilde_is_refused(cwd):
    async with agent_of(raw({"session/new": FATAL}, capabilities=EVERYTHING)) as agent:
        with pytest.raises(InvalidDirectoryError):
            await agent.new_session(cwd)
        with pytest.raises(InvalidDirectoryError):
            await agent.new_session("/", additional_directories=[cwd])


@pytest.mark.parametrize(("cwd", "sent"), [("project", "project"), (Path("./project/../b"), "b"), (".", "")])
async def test_relative_directory_is_sent_as_absolute(cwd, sent, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    expected = os.path.join(tmp_path, sent).rstrip("/")
    async with agent_of(raw({}, capabilities=EVERYTHING), cwd="/") as agent:
        session = await agent.new_session(cwd, additional_directories=[cwd])
        assert (session.cwd, session.additional_directories) == (expected, (expected,))


async def test_missing_servers_are_sent_as_an_empty_list(tmp_path):
    heard = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    if request["method"] == "session/new":
        assert request["params"] == {"cwd": sys.argv[1], "mcpServers": []}, request
    result = {"protocolVersion": 1, "sessionId": "s"}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
    async with agent_of([sys.executable, "-c", heard, str(tmp_path)]) as agent:
        assert (await agent.new_session(tmp_path)).cwd == str(tmp_path)


async def test_unknown_login_method_is_refused():
    async with agent_of(raw({"authenticate": FATAL})) as agent:
        with pytest.raises(NotOfferedError, match="offers none"):
            await agent.authenticate("key")


MODES = {"currentModeId": "ask", "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}]}
OPTION = {
    "id": "model",
    "name": "Model",
    "type": "select",
    "currentValue": "small",
    "options": [{"value": "small", "name": "Small"}, {"value": "large", "name": "Large"}],
}
SET_UP = {"session/new": [[{"result": {"sessionId": "s", "modes": MODES, "configOptions": [OPTION]}}]]}


async def test_modes_and_options_can_be_set():
    larger = {"result": {"configOptions": [{**OPTION, "currentValue": "large"}]}}
    async with agent_of(raw(SET_UP | {"session/set_config_option": [[larger]]})) as agent:
        session = await agent.new_session("/")
        await session.set_mode("code")
        await session.set_config_option("model", "large")
        assert session.modes.current_mode_id == "code"
        assert [mode.id for mode in session.modes.available_modes] == ["ask", "code"]
        assert [option.current_value for option in session.config_options] == ["large"]


async def test_unknown_modes_and_options_are_refused():
    async with agent_of(raw(SET_UP | {"session/set_mode": FATAL, "session/set_config_option": FATAL})) as agent:
        session = await agent.new_session("/")
        with pytest.raises(NotOfferedError, match="ask, code"):
            await session.set_mode("fly")
        with pytest.raises(NotOfferedError, match="model"):
            await session.set_config_option("wings", True)


@pytest.mark.parametrize("leave", ["close", "delete"])
async def test_closed_or_deleted_session_refuses_prompts(leave):
    async with agent_of(raw({}, [{"exit": 9}], capabilities=EVERYTHING)) as agent:
        session = await agent.new_session("/")
        await getattr(session, leave)()
        with pytest.raises(SessionClosedError):
            await session.ask("hello?")
