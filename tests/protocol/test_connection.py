import asyncio
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ErrorCode, InvalidResultError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import (
    FS_READ_TEXT_FILE,
    INITIALIZE,
    SESSION_CANCEL,
    SESSION_NEW,
    SESSION_PROMPT,
    SESSION_UPDATE,
)
from dragoman.protocol.unions import UnknownVariant
from dragoman.wire import memory_pair
from tests.errors import refused


@asynccontextmanager
async def connected(agent_routes=None, client_routes=None):
    near, far = memory_pair()
    async with (
        asyncio.timeout(30),
        Connection(near, client_routes or Routes("client")) as to_agent,
        Connection(far, agent_routes or Routes("agent")) as to_client,
    ):
        yield to_agent, to_client


async def test_typed_call_returns_a_typed_result():
    async def initialize(params):
        assert isinstance(params, v1.InitializeRequest)
        return v1.InitializeResponse(protocol_version=params.protocol_version)

    routes = Routes("agent")
    routes.on_request(INITIALIZE, initialize)
    async with connected(routes) as (agent, _):
        answer = await agent.call(INITIALIZE, v1.InitializeRequest(protocol_version=1))
        assert answer == v1.InitializeResponse(protocol_version=1)


async def test_unhandled_request_is_method_not_found():
    async with connected() as (agent, client):
        assert (await refused(agent.call_extension("session/teleport", {}))).code == ErrorCode.METHOD_NOT_FOUND
        read = v1.ReadTextFileRequest(session_id="s", path="/x")
        assert (await refused(client.call(FS_READ_TEXT_FILE, read))).code == ErrorCode.METHOD_NOT_FOUND


async def test_a_notification_sent_as_a_request_is_explained():
    routes = Routes("agent")
    routes.on_notification(SESSION_CANCEL, lambda params: None)
    async with connected(routes) as (agent, _):
        error = await refused(agent.call_extension("session/cancel", {"sessionId": "s"}))
        of_wire = await refused(agent.call_extension("$/cancel_request", {"requestId": 1}))
    assert (error.code, error.data) == (ErrorCode.METHOD_NOT_FOUND, {"method": "session/cancel"})
    assert error.message == "Method not found: session/cancel is a notification: send it without an id"
    assert of_wire.message == "Method not found: $/cancel_request is a notification: send it without an id"


async def test_an_unknown_notification_is_ignored():
    async with connected() as (agent, _):
        await agent.notify_extension("session/whatever", {"x": 1})
        await agent.notify_extension("_ours", {"x": 1})
        assert (await refused(agent.call_extension("_ping", {}))).code == ErrorCode.METHOD_NOT_FOUND


async def test_extension_requests_reach_their_handler():
    async def double(params):
        return {"twice": params["x"] * 2}

    routes = Routes("agent")
    routes.on_extension("_example/double", double)
    async with connected(routes) as (agent, _):
        assert await agent.call_extension("_example/double", {"x": 21}) == {"twice": 42}


def test_an_extension_name_without_underscore_is_refused():
    with pytest.raises(ValueError, match="underscore"):
        Routes("agent").on_extension("example/double", lambda params: None)


async def test_agent_refuses_a_malformed_field_by_name():
    async def new(params):
        raise AssertionError("must not be called")

    routes = Routes("agent")
    routes.on_request(SESSION_NEW, new)
    async with connected(routes) as (agent, _):
        error = await refused(
            agent.call_extension("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": 5})
        )
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.additionalDirectories")


async def test_malformed_notification_does_not_affect_the_next_one():
    seen = []
    routes = Routes("agent")
    routes.on_notification(SESSION_CANCEL, seen.append)
    async with connected(routes) as (agent, _):
        await agent.notify_extension("session/cancel", {"sessionId": 5})
        await agent.notify(SESSION_CANCEL, v1.CancelNotification(session_id="s"))
        await refused(agent.call_extension("_sync", {}))
        assert seen == [v1.CancelNotification(session_id="s")]


async def test_client_tolerates_unknown_updates_and_malformed_details():
    seen = []
    routes = Routes("client")
    routes.on_notification(SESSION_UPDATE, seen.append)
    async with connected(client_routes=routes) as (_, client):
        for update in (
            {"sessionUpdate": "from_the_future", "x": [1]},
            {"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "kind": "teleport"},
            {"sessionUpdate": "agent_message_chunk", "content": {"type": "hologram", "data": 1}},
        ):
            await client.notify_extension("session/update", {"sessionId": "s", "update": update})
        await refused(client.call_extension("_sync", {}))
    unknown, call, chunk = [notification.update for notification in seen]
    assert unknown == UnknownVariant("from_the_future", {"sessionUpdate": "from_the_future", "x": [1]})
    assert (call.title, call.kind) == ("t", None)
    assert chunk.content.tag == "hologram"


async def test_unknown_variant_is_forwarded_unchanged():
    seen = []
    routes = Routes("client")
    routes.on_notification(SESSION_UPDATE, seen.append)
    update = UnknownVariant("from_the_future", {"sessionUpdate": "from_the_future", "x": None})
    async with connected(client_routes=routes) as (_, client):
        await client.notify(SESSION_UPDATE, v1.SessionNotification(session_id="s", update=update))
        await refused(client.call_extension("_sync", {}))
    assert seen[0].update == update


async def test_result_that_breaks_the_schema_only_fails_its_call():
    async def prompt(params):
        return {"stopReason": "bored"}

    routes = Routes("agent")
    routes.on_request(SESSION_PROMPT, prompt)
    async with connected(routes) as (agent, _):
        with pytest.raises(InvalidResultError, match=r"result\.stopReason"):
            await agent.call(SESSION_PROMPT, v1.PromptRequest(session_id="s", prompt=[]))
        assert (await refused(agent.call_extension("_sync", {}))).code == ErrorCode.METHOD_NOT_FOUND


async def test_meta_survives_both_ways():
    async def new(params):
        return v1.NewSessionResponse(session_id="s", meta=params.meta)

    routes = Routes("agent")
    routes.on_request(SESSION_NEW, new)
    meta = {"example.com/x": {"deep": [1, None]}}
    async with connected(routes) as (agent, _):
        answer = await agent.call(SESSION_NEW, v1.NewSessionRequest(cwd="/", mcp_servers=[], meta=meta))
        assert answer.meta == meta
