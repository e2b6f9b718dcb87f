"""Python functions as tools, over every transport, called by our own agent."""

import asyncio
import json
import sys
import uuid
from contextlib import asynccontextmanager

import pytest

from dragoman.client import connect, read_trajectory
from dragoman.client.services.functions import FunctionHost, serve_functions
from dragoman.errors import ErrorCode, RemoteError
from dragoman.mcp.era import CAPABILITIES_KEY, MODERN_VERSIONS, VERSION_KEY
from dragoman.mcp.serving.function_tool import UnusableFunctionError
from dragoman.mcp.serving.over_acp import MAX_ACTIVE, AcpFunctionServers
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import (
    INITIALIZE,
    MCP_MESSAGE,
    MCP_NOTIFICATION,
    SESSION_CANCEL,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_UPDATE,
)
from dragoman.wire import memory_pair
from tests.client.driving import open_connection
from tests.mcp.function_tools import Functions

WAYS = {
    "acp": v1.McpCapabilities(acp=True, http=True),
    "stdio": v1.McpCapabilities(http=True, sse=True),
}
on_each_way = pytest.mark.parametrize("way", WAYS)


class Talk:
    """A session of a real agent that has the functions and follows its script."""

    def __init__(self, connection, session_id, updates):
        self._connection = connection
        self._session_id = session_id
        self._updates = updates

    async def ask(self):
        request = v1.PromptRequest(session_id=self._session_id, prompt=[v1.TextContent(text="go")])
        return (await self._connection.call(SESSION_PROMPT, request)).stop_reason

    async def cancel(self):
        await self._connection.notify(SESSION_CANCEL, v1.CancelNotification(session_id=self._session_id))

    def calls(self):
        """Return the latest status and texts of the tool calls."""
        calls = {}
        for update in self._updates:
            if isinstance(update, v1.ToolCall | v1.ToolCallProgress):
                status, texts = calls.get(update.tool_call_id, (None, []))
                shown = [each.content.text for each in update.content or [] if hasattr(each, "content")]
                calls[update.tool_call_id] = (update.status or status, shown or texts)
        return list(calls.values())

    def shown(self):
        """Return all texts of the tool calls in order."""
        updates = [each for each in self._updates if isinstance(each, v1.ToolCallProgress)]
        return [each.content.text for update in updates for each in update.content or []]

    def raw_outputs(self):
        updates = [each for each in self._updates if isinstance(each, v1.ToolCallProgress)]
        return [each.raw_output for each in updates if each.raw_output is not None]


def tool(name, /, **arguments):
    return {"tool": {"name": f"functions__{name}", "arguments": arguments}}


@asynccontextmanager
async def agent_with(tmp_path, way, tools, *parts):
    """Start our agent with a script of these calls, and yield a session with the functions."""
    script = tmp_path / "script.yaml"
    script.write_text(json.dumps([list(parts), [{"text": "done"}]]))
    profile = tmp_path / "agent.yaml"
    profile.write_text(json.dumps({"permissions": {"mode": "yolo", "allow_yolo": True}}))
    updates, routes, inside = [], Routes("client"), AcpFunctionServers()
    routes.on_notification(SESSION_UPDATE, lambda notification: updates.append(notification.update))
    inside.register(routes)
    command = [sys.executable, "-m", "dragoman", "agent", "--agent", str(profile), "--model", f"script:{script}"]
    async with asyncio.timeout(50), open_connection(command, routes) as connection:
        inside.attach(connection)
        hello = await connection.call(INITIALIZE, v1.InitializeRequest(protocol_version=1))
        capabilities = hello.agent_capabilities
        assert capabilities.mcp_capabilities.acp
        if way != "acp":
            capabilities = v1.AgentCapabilities(mcp_capabilities=WAYS[way])
        async with serve_functions(tools, capabilities, inside) as served:
            request = v1.NewSessionRequest(cwd=str(tmp_path), mcp_servers=[served])
            session = (await connection.call(SESSION_NEW, request)).session_id
            yield Talk(connection, session, updates)


@on_each_way
async def test_an_agent_calls_a_function(tmp_path, way):
    functions = Functions()
    async with agent_with(tmp_path, way, functions.all(), tool("add", a=2), tool("greet", name="Zoë")) as talk:
        assert await talk.ask() == "end_turn"
        assert talk.calls() == [("completed", ['{"sum":3}']), ("completed", ["grüezi Zoë"])]
        assert {"sum": 3} in talk.raw_outputs()


@on_each_way
async def test_agent_gets_the_functions_errors(tmp_path, way):
    functions = Functions()
    async with agent_with(tmp_path, way, functions.all(), tool("fail"), tool("add", a="two")) as talk:
        assert await talk.ask() == "end_turn"
        unfit = "the arguments of add do not fit: Expected `int`, got `str` - at `$.a`"
        assert talk.calls() == [("failed", ["LookupError: no such thing"]), ("failed", [unfit])]


@on_each_way
async def test_a_cancelled_turn_cancels_the_function(tmp_path, way):
    functions = Functions()
    async with agent_with(tmp_path, way, functions.all(), tool("wait")) as talk:
        turn = asyncio.create_task(talk.ask())
        await functions.begun.wait()
        await talk.cancel()
        assert await turn == "cancelled"
        await functions.cancelled.wait()


@on_each_way
async def test_agent_shows_the_progress_of_a_function(tmp_path, way):
    functions = Functions()
    async with agent_with(tmp_path, way, functions.all(), tool("count", to=3)) as talk:
        assert await talk.ask() == "end_turn"
        shown = talk.shown()
        assert shown[-1] == "counted"
        assert any("3 of 3" in text for text in shown)


@pytest.mark.parametrize(("way", "kind"), [("acp", v1.McpServerAcp), ("stdio", v1.McpServerStdio)])
async def test_functions_use_acp_if_the_agent_supports_it(way, kind):
    capabilities = v1.AgentCapabilities(mcp_capabilities=WAYS[way])
    async with serve_functions([Functions().greet], capabilities, AcpFunctionServers(), name="mine") as served:
        assert type(served) is kind
        assert served.name == "mine"


@asynccontextmanager
async def asking(*servers):
    """Connect a bare agent to a client with function servers. Yield the agent's end and the server ids."""
    near, far = memory_pair()
    heard = []
    agent_routes, client_routes, inside = Routes("agent"), Routes("client"), AcpFunctionServers()
    agent_routes.on_notification(MCP_NOTIFICATION, heard.append)
    inside.register(client_routes)
    capabilities = v1.AgentCapabilities(mcp_capabilities=WAYS["acp"])
    async with asyncio.timeout(50), Connection(far, client_routes) as client, Connection(near, agent_routes) as agent:
        inside.attach(client)
        async with serve_functions(servers, capabilities, inside) as served:
            yield Bare(agent, heard), served.server_id


class Bare:
    """The agent's end of a bare connection."""

    def __init__(self, connection, heard):
        self.heard = heard
        self._connection = connection

    async def send(self, server_id, method, params=None, request_id=None):
        """Send a request unchanged and return its answer message."""
        request = v1.MessageMcpRequest(
            server_id=server_id, request_id=request_id or str(uuid.uuid4()), method=method, params=params
        )
        return await self._connection.call(MCP_MESSAGE, request)

    async def ask(self, server_id, method, *, request_id=None, **params):
        """Send a request of the current MCP version and return its result."""
        meta = {**META, **params.pop("_meta", {})}
        return (await self.send(server_id, method, {**params, "_meta": meta}, request_id)).result


META = {VERSION_KEY: MODERN_VERSIONS[-1], CAPABILITIES_KEY: {}}


async def refusal(call):
    with pytest.raises(RemoteError) as caught:
        await call
    return caught.value.code


async def test_function_server_reports_the_newest_version():
    async with asking(Functions().greet) as (agent, server_id):
        found = await agent.ask(server_id, "server/discover")
        assert (found["supportedVersions"], found["resultType"]) == (list(MODERN_VERSIONS), "complete")
        listed = await agent.ask(server_id, "tools/list")
        assert [tool["name"] for tool in listed["tools"]] == ["greet"]
        assert listed["ttlMs"] > 0


async def test_an_error_of_the_server_is_inside_the_answer():
    async with asking(Functions().greet) as (agent, server_id):
        for method, params, code in (
            ("initialize", {"_meta": META}, ErrorCode.METHOD_NOT_FOUND),
            ("tools/call", {"_meta": META, "name": "made-up"}, ErrorCode.INVALID_PARAMS),
            ("tools/list", None, ErrorCode.INVALID_PARAMS),
            ("tools/list", {"_meta": {VERSION_KEY: MODERN_VERSIONS[-1]}}, ErrorCode.INVALID_PARAMS),
        ):
            outcome = await agent.send(server_id, method, params)
            assert outcome.error.code == code, method
        stranger = await agent.send(server_id, "server/discover", {"_meta": {**META, VERSION_KEY: "2099-01-01"}})
        assert stranger.error.code == -32022
        assert stranger.error.data == {"supported": list(MODERN_VERSIONS), "requested": "2099-01-01"}


async def test_unknown_server_is_unavailable():
    async with asking() as (agent, _):
        assert await refusal(agent.ask("made-up", "tools/list")) == ErrorCode.MCP_SERVER_UNAVAILABLE


async def test_request_id_in_use_is_refused():
    functions = Functions()
    async with asking(*functions.all()) as (agent, server_id):
        waiting = asyncio.create_task(agent.ask(server_id, "tools/call", request_id="mine", name="wait"))
        await functions.begun.wait()
        assert await refusal(agent.ask(server_id, "tools/list", request_id="mine")) == ErrorCode.INVALID_PARAMS
        waiting.cancel()
        await functions.cancelled.wait()
        assert await agent.ask(server_id, "tools/list", request_id="mine")


async def test_too_many_requests_at_a_time_are_refused():
    functions = Functions()
    async with asking(*functions.all()) as (agent, server_id):
        calls = [asyncio.create_task(agent.ask(server_id, "tools/call", name="wait")) for _ in range(MAX_ACTIVE)]
        await functions.begun.wait()
        assert await refusal(agent.ask(server_id, "tools/list")) == ErrorCode.MCP_LIMIT_EXCEEDED
        for call in calls:
            call.cancel()


async def test_a_cancelled_request_cancels_the_function():
    functions = Functions()
    async with asking(*functions.all()) as (agent, server_id):
        waiting = asyncio.create_task(agent.ask(server_id, "tools/call", name="wait"))
        await functions.begun.wait()
        waiting.cancel()
        await functions.cancelled.wait()
        assert await agent.ask(server_id, "tools/list")


async def test_calls_of_one_server_run_concurrently():
    functions = Functions()
    async with asking(*functions.all()) as (agent, server_id):
        calls = [agent.ask(server_id, "tools/call", name="meet") for _ in range(2)]
        assert [each["content"][0]["text"] for each in await asyncio.gather(*calls)] == ["met", "met"]


async def test_progress_carries_the_request_and_comes_first():
    functions = Functions()
    async with asking(*functions.all()) as (agent, server_id):
        meta = {"progressToken": "mine"}
        await agent.ask(server_id, "tools/call", request_id="r", name="count", arguments={"to": 2}, _meta=meta)
        assert [(each.server_id, each.request_id, each.params) for each in agent.heard] == [
            (server_id, "r", {"progressToken": "mine", "progress": 1, "total": 2, "message": "at 1"}),
            (server_id, "r", {"progressToken": "mine", "progress": 2, "total": 2, "message": "at 2"}),
        ]


async def test_stopped_functions_cannot_be_called():
    inside, routes = AcpFunctionServers(), Routes("client")
    inside.register(routes)
    near, far = memory_pair()
    functions = Functions()
    capabilities = v1.AgentCapabilities(mcp_capabilities=WAYS["acp"])
    async with Connection(far, routes), Connection(near, Routes("agent")) as connection:
        agent = Bare(connection, [])
        async with serve_functions(functions.all(), capabilities, inside) as served:
            server_id = served.server_id
            waiting = asyncio.create_task(agent.ask(server_id, "tools/call", name="wait"))
            await functions.begun.wait()
        assert await refusal(waiting) == ErrorCode.REQUEST_CANCELLED
        assert await refusal(agent.ask(server_id, "tools/list")) == ErrorCode.MCP_SERVER_UNAVAILABLE


async def offer(host, *tools):
    capabilities = v1.AgentCapabilities(mcp_capabilities=WAYS["stdio"])
    async with host.offering(tools, capabilities) as functions:
        return functions


async def test_functions_are_served_until_stopped():
    functions = Functions()
    async with FunctionHost(AcpFunctionServers()) as host:
        one, two = await offer(host, functions.greet), await offer(host, functions.greet)
        assert await answers(one.servers[0])
        one.stop()
        await until_silent(one.servers[0])
        assert await answers(two.servers[0])
    assert not await answers(two.servers[0])


async def test_functions_of_an_unopened_session_are_stopped():
    async with FunctionHost(AcpFunctionServers()) as host:
        with pytest.raises(ZeroDivisionError):
            async with host.offering(
                [Functions().greet], v1.AgentCapabilities(mcp_capabilities=WAYS["stdio"])
            ) as offered:
                raise ZeroDivisionError
        await until_silent(offered.servers[0])


async def test_without_functions_there_is_no_server():
    async with FunctionHost(AcpFunctionServers()) as host:
        functions = await offer(host)
        assert functions.servers == ()
        functions.stop()


async def answers(definition):
    try:
        _, writer = await asyncio.open_unix_connection(definition.args[-1])
    except OSError:
        return False
    writer.close()
    return True


async def until_silent(definition):
    async with asyncio.timeout(50):
        while await answers(definition):
            pass


async def test_unusable_function_raises_an_error_for_the_caller():
    async with FunctionHost(AcpFunctionServers()) as host:
        with pytest.raises(UnusableFunctionError):
            await offer(host, lambda: None)


@pytest.mark.parametrize("version", [1, 2])
async def test_functions_work_over_both_acp_versions(tmp_path, version):
    functions = Functions()
    script, profile = tmp_path / "script.yaml", tmp_path / "agent.yaml"
    script.write_text(json.dumps([[tool("count", to=2), tool("greet", name="Zoë")], [{"text": "done"}]]))
    profile.write_text(json.dumps({"permissions": {"mode": "yolo", "allow_yolo": True}}))
    command = [sys.executable, "-m", "dragoman", "agent", "--agent", str(profile), "--model", f"script:{script}"]
    record = tmp_path / "record.jsonl"
    async with asyncio.timeout(50), connect(command, record=record, protocol_version=version) as agent:
        assert agent.protocol_version == version
        session = await agent.new_session(str(tmp_path), tools=functions.all())
        calls = (await session.run("go")).tool_calls
        assert [call.content[-1].content.text for call in calls] == ["counted", "grüezi Zoë"]
    messages = [each.message for each in read_trajectory(record) if each.message]
    inner = [each["params"]["method"] for each in messages if each.get("method") == "mcp/message"]
    assert {"server/discover", "tools/list", "tools/call", "notifications/progress"} <= set(inner)
