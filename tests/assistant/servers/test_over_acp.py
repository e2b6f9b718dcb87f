"""Servers that live inside the client, spoken to over the ACP connection itself."""

import asyncio

from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol import v1
from dragoman.protocol.mcp_connections import (
    MCP_CONNECT,
    MCP_CONNECTION_NOTIFICATION,
    MCP_CONNECTION_REQUEST,
    MCP_DISCONNECT,
    ConnectMcpResponse,
    DisconnectMcpResponse,
    McpConnectionNotification,
    McpConnectionRequest,
)
from dragoman.protocol.methods import ELICITATION_CREATE
from tests.assistant.servers.talking import begin, call, connected, said, text
from tests.errors import refused

ECHO = {"name": "echo", "description": "Answers what it was given", "inputSchema": {"type": "object"}}


class Inside:
    """MCP servers inside a client, by id; `calls` says what comes of a call of a tool."""

    def __init__(self, client):
        self.connection = client.connection
        self.connected = []
        self.disconnected = asyncio.Event()
        self.heard = []
        self.cancelled = asyncio.Event()
        self.begun = asyncio.Event()
        self.tools = [ECHO]
        self.calls = self.echo
        client.routes.on_request(MCP_CONNECT, self._connect)
        client.routes.on_request(MCP_CONNECTION_REQUEST, self._answer)
        client.routes.on_request(MCP_DISCONNECT, self._disconnect)
        client.routes.on_notification(MCP_CONNECTION_NOTIFICATION, self._hear)

    async def tell(self, method, params=None, connection_id="connection-1"):
        notice = McpConnectionNotification(connection_id=connection_id, method=method, params=params)
        await self.connection.notify(MCP_CONNECTION_NOTIFICATION, notice)

    async def ask(self, method, params=None, connection_id="connection-1"):
        request = McpConnectionRequest(connection_id=connection_id, method=method, params=params)
        return await self.connection.call(MCP_CONNECTION_REQUEST, request)

    async def echo(self, params):
        return {"content": [{"type": "text", "text": params["arguments"].get("text", "")}]}

    async def _connect(self, params, request):
        if params.server_id == "unknown":
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, "there is no such server", phrase="no server of that id")
        self.connected.append(params.server_id)
        return ConnectMcpResponse(connection_id=f"connection-{len(self.connected)}")

    async def _answer(self, params, request):
        match params.method:
            case "initialize":
                return {
                    "protocolVersion": params.params["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "inside", "version": "1"},
                }
            case "tools/list":
                return {"tools": self.tools}
            case "tools/call":
                self.begun.set()
                try:
                    return await self.calls(params.params)
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
            case _:
                raise RpcError(ErrorCode.METHOD_NOT_FOUND)

    def _hear(self, params):
        self.heard.append(params.method)

    async def _disconnect(self, params, request):
        self.disconnected.set()
        return DisconnectMcpResponse()


def acp(server_id="inner"):
    return v1.McpServerAcp(name="one", server_id=server_id)


async def test_a_server_inside_the_client_is_called_over_the_connection(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one", transport="acp", tools=1)
        assert inside.connected == ["inner"]
        assert said((await talk.ask()).call) == "hi"
        assert "notifications/initialized" in inside.heard
        await talk.close()
        await inside.disconnected.wait()


async def test_it_is_advertised(place):
    async with connected(place) as (client, _):
        assert (await client.initialize()).agent_capabilities.mcp_capabilities.acp


async def test_a_client_that_refuses_the_connection_is_a_failure_in_words(place):
    async with connected(place) as (client, _):
        Inside(client)
        talk = await begin(client, place[0], acp("unknown"))
        await talk.until("failed", "one")
        assert "no server of that id" in talk.statuses()["one"]["reason"]
        assert "The MCP server one failed" in (await talk.ask()).notices[0]


async def test_a_client_that_knows_nothing_of_it_is_a_failure_in_words(place):
    async with connected(place) as (client, _):
        talk = await begin(client, place[0], acp())
        await talk.until("failed", "one")
        assert "mcp/connect" in talk.statuses()["one"]["reason"]


async def test_progress_is_shown(place):
    async with connected(place, call("one__echo"), text()) as (client, _):
        inside = Inside(client)

        async def count(params):
            token = params["_meta"]["progressToken"]
            for step in (1, 2):
                await inside.tell("notifications/progress", {"progressToken": token, "progress": step, "total": 2})
            return {"content": [{"type": "text", "text": "counted"}]}

        inside.calls = count
        talk = await begin(client, place[0], acp())
        assert (await talk.ask()).call["shown"] == ["1 of 2", "2 of 2", "counted"]


async def test_an_error_of_the_server_fails_the_call_in_its_words(place):
    async with connected(place, call("one__echo"), text("went on")) as (client, _):
        inside = Inside(client)

        async def fail(params):
            raise RpcError(ErrorCode.INTERNAL_ERROR, phrase="the printer is on fire")

        inside.calls = fail
        talk = await begin(client, place[0], acp())
        turn = await talk.ask()
        assert turn.call["status"] == "failed"
        assert "the printer is on fire" in said(turn.call)
        assert turn.text == "went on"


async def test_a_cancelled_turn_cancels_the_request_at_the_client(place):
    async with connected(place, call("one__echo"), text()) as (client, _):
        inside = Inside(client)
        inside.calls = lambda params: asyncio.Event().wait()
        talk = await begin(client, place[0], acp())
        turn = asyncio.create_task(talk.ask())
        await inside.begun.wait()
        await client.cancel(talk.id)
        ended = await turn
        assert (ended.stop, ended.call["status"]) == ("cancelled", "failed")
        await inside.cancelled.wait()
        assert talk.statuses()["one"]["state"] == "ready"


async def test_tools_that_change_are_listed_anew(place):
    async with connected(place) as (client, model):
        inside = Inside(client)
        talk = await begin(client, place[0], acp())
        await talk.until("ready", "one")
        inside.tools = [ECHO, {**ECHO, "name": "more"}]
        await inside.tell("notifications/tools/list_changed")
        await talk.until("ready", "one", tools=2)
        await talk.ask()
        assert model.tools() == [["one__echo", "one__more"]]


async def test_what_the_server_asks_during_a_call_is_answered(place):
    form = v1.ClientCapabilities(elicitation=v1.ElicitationCapabilities(form=v1.ElicitationFormCapabilities()))
    async with connected(place, call("one__echo"), text(), capabilities=form) as (client, _):
        inside = Inside(client)

        async def answer(params, request):
            return v1.ElicitationAcceptAction(content={"size": "XL"})

        async def ask(params):
            schema = {"type": "object", "properties": {"size": {"type": "string"}}}
            chosen = await inside.ask("elicitation/create", {"message": "Which?", "requestedSchema": schema})
            roots = await inside.ask("roots/list")
            return {"content": [{"type": "text", "text": f"{chosen['content']['size']} {roots['roots'][0]['uri']}"}]}

        client.routes.on_request(ELICITATION_CREATE, answer)
        inside.calls = ask
        talk = await begin(client, place[0], acp())
        assert said((await talk.ask()).call) == f"XL {place[0].as_uri()}"


async def test_two_sessions_have_a_connection_each(place):
    async with connected(place, call("one__echo", text="hi"), text()) as (client, _):
        inside = Inside(client)
        first, second = await begin(client, place[0], acp()), await begin(client, place[0], acp())
        await first.until()
        await second.until()
        assert inside.connected == ["inner", "inner"]
        await first.close()
        error = await refused(inside.ask("roots/list", connection_id="connection-1"))
        assert error.code == ErrorCode.RESOURCE_NOT_FOUND
        assert said((await second.ask()).call) == "hi"


async def test_a_message_for_no_connection_is_refused_or_ignored(place):
    async with connected(place) as (client, _):
        inside = Inside(client)
        talk = await begin(client, place[0])
        await inside.tell("notifications/tools/list_changed", connection_id="nowhere")
        error = await refused(inside.ask("roots/list", connection_id="nowhere"))
        assert error.code == ErrorCode.RESOURCE_NOT_FOUND
        assert (await talk.ask()).text == "done"
