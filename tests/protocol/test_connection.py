import asyncio
from contextlib import asynccontextmanager

import pytest

from dragoman.errors import ErrorCode, InvalidResult
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


async def test_a_typed_call_gets_a_typed_result():
    async def initialize(params, request):
        assert isinstance(params, v1.InitializeRequest)
        return v1.InitializeResponse(protocol_version=params.protocol_version)

    routes = Routes("agent")
    routes.on_request(INITIALIZE, initialize)
    async with connected(routes) as (agent, _):
        answer = await agent.call(INITIALIZE, v1.InitializeRequest(protocol_version=1))
        assert answer == v1.InitializeResponse(protocol_version=1)


async def test_a_request_that_nobody_handles_is_method_not_found():
    async with connected() as (agent, client):
        assert (await refused(agent.call_extension("session/teleport", {}))).code == ErrorCode.METHOD_NOT_FOUND
        read = v1.ReadTextFileRequest(session_id="s", path="/x")
        assert (await refused(client.call(FS_READ_TEXT_FILE, read))).code == ErrorCode.METHOD_NOT_FOUND


async def test_an_unknown_notification_is_ignored():
    async with connected() as (agent, _):
        await agent.notify_extension("session/whatever", {"x": 1})
        await agent.notify_extension("_ours", {"x": 1})
        assert (await refused(agent.call_extension("_ping", {}))).code == ErrorCode.METHOD_NOT_FOUND


async def test_extension_methods_can_be_handled_on_both_sides():
    noted = []

    async def double(params, request):
        return {"twice": params["x"] * 2}

    routes = Routes("agent")
    routes.on_extension("_example/double", double)
    routes.on_extension_notification("_example/note", noted.append)
    async with connected(routes) as (agent, _):
        await agent.notify_extension("_example/note", {"y": None})
        assert await agent.call_extension("_example/double", {"x": 21}) == {"twice": 42}
        assert noted == [{"y": None}]


def test_an_extension_name_without_underscore_is_refused():
    with pytest.raises(ValueError, match="underscore"):
        Routes("agent").on_extension("example/double", lambda params, request: None)


async def test_as_agent_a_malformed_field_is_refused_by_name():
    async def new(params, request):
        raise AssertionError("must not be called")

    routes = Routes("agent")
    routes.on_request(SESSION_NEW, new)
    async with connected(routes) as (agent, _):
        error = await refused(
            agent.call_extension("session/new", {"cwd": "/", "mcpServers": [], "additionalDirectories": 5})
        )
        assert (error.code, error.data["path"]) == (ErrorCode.INVALID_PARAMS, "params.additionalDirectories")


async def test_a_malformed_notification_is_ignored_and_the_next_one_handled():
    seen = []
    routes = Routes("agent")
    routes.on_notification(SESSION_CANCEL, seen.append)
    async with connected(routes) as (agent, _):
        await agent.notify_extension("session/cancel", {"sessionId": 5})
        await agent.notify(SESSION_CANCEL, v1.CancelNotification(session_id="s"))
        await refused(agent.call_extension("_sync", {}))
        assert seen == [v1.CancelNotification(session_id="s")]


async def test_as_client_unknown_updates_and_malformed_details_are_lived_with():
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


async def test_an_unknown_variant_is_sent_on_as_it_came():
    seen = []
    routes = Routes("client")
    routes.on_notification(SESSION_UPDATE, seen.append)
    update = UnknownVariant("from_the_future", {"sessionUpdate": "from_the_future", "x": None})
    async with connected(client_routes=routes) as (_, client):
        await client.notify(SESSION_UPDATE, v1.SessionNotification(session_id="s", update=update))
        await refused(client.call_extension("_sync", {}))
    assert seen[0].update == update


async def test_a_result_that_breaks_the_schema_fails_that_call_alone():
    async def prompt(params, request):
        return {"stopReason": "bored"}

    routes = Routes("agent")
    routes.on_request(SESSION_PROMPT, prompt)
    async with connected(routes) as (agent, _):
        with pytest.raises(InvalidResult, match=r"result\.stopReason"):
            await agent.call(SESSION_PROMPT, v1.PromptRequest(session_id="s", prompt=[]))
        assert (await refused(agent.call_extension("_sync", {}))).code == ErrorCode.METHOD_NOT_FOUND


async def test_meta_survives_both_ways():
    async def new(params, request):
        return v1.NewSessionResponse(session_id="s", meta=params.meta)

    routes = Routes("agent")
    routes.on_request(SESSION_NEW, new)
    meta = {"example.com/x": {"deep": [1, None]}}
    async with connected(routes) as (agent, _):
        answer = await agent.call(SESSION_NEW, v1.NewSessionRequest(cwd="/", mcp_servers=[], meta=meta))
        assert answer.meta == meta
