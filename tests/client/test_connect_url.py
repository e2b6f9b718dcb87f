"""Connecting to an agent at a URL, and all ways it can fail."""

import asyncio
import json
import threading
from contextlib import asynccontextmanager

import pytest
from websockets.asyncio.server import serve

from dragoman.client import connect_url, connect_url_sync, read_trajectory
from dragoman.client.errors import ConnectError, InvalidAddressError, WrongVersionError
from dragoman.client.events import TextChunk
from dragoman.client.policies import allow_all
from dragoman.errors import ConnectionClosedError
from dragoman.testing import ScriptedAgent, steps
from dragoman.wire.websocket import WebSocketTransport
from tests.protocol.rough_server import rough_server

TOKEN = "s3cret-t0ken"


@asynccontextmanager
async def scripted_server(*turns, seen=None, opened=None):
    """Serve the scripted agent on a WebSocket."""

    async def answer(connection):
        if seen is not None:
            seen.append(connection.request.headers.get("Authorization"))
        if opened is not None:
            opened.append(connection)
        await ScriptedAgent(WebSocketTransport(connection), list(turns)).serve()

    async with asyncio.timeout(30), serve(answer, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/acp"


async def failure_of(url, kind=ConnectError, **options):
    with pytest.raises(kind) as caught:
        async with connect_url(url, **options):
            pass
    assert TOKEN not in str(caught.value)
    return caught.value


async def test_conversation_with_a_remote_agent(tmp_path):
    seen = []
    async with (
        scripted_server([steps.Say("a "), steps.AskPermission(), steps.Say("b")], seen=seen) as url,
        connect_url(url, token=TOKEN, policy=allow_all()) as agent,
    ):
        assert agent.info.name == "dragoman-scripted-agent"
        session = await agent.new_session(tmp_path)
        texts = [event.text async for event in session.prompt("go") if isinstance(event, TextChunk)]
        assert texts == ["a ", "outcome: selected yes", "b"]
    assert seen == [f"Bearer {TOKEN}"]


async def test_the_conversation_is_recorded_without_the_token(tmp_path):
    record = tmp_path / "run.jsonl"
    async with (
        scripted_server([steps.Say("a")]) as url,
        connect_url(f"{url}?key={TOKEN}", token=TOKEN, record=record) as agent,
    ):
        session = await agent.new_session(tmp_path)
        assert await session.ask("go") == "a"
    assert TOKEN not in record.read_text()
    assert len(list(read_trajectory(record))) > 4


async def test_lost_connection_fails_every_call(tmp_path):
    opened = []
    turn = [steps.Say("a"), steps.WaitForCancel()]
    async with scripted_server(turn, opened=opened) as url, connect_url(url) as agent:
        session = await agent.new_session(tmp_path)
        with pytest.raises(ConnectionClosedError, match="the WebSocket was closed"):
            async for _ in session.prompt("go"):
                opened[0].transport.abort()


async def test_refused_connection_says_what_to_do():
    async with rough_server() as server:
        server.on_post = lambda request: request.reply(401, b'{"error": "no token"}') is None
        error = await failure_of(server.url, token=TOKEN)
        assert str(error) == (
            f"{server.url} answered HTTP 401 (no token): it needs a valid token; "
            "pass it with --token-file FILE or in $DRAGOMAN_TOKEN"
        )


async def test_refused_initialize_is_quoted():
    async with rough_server() as server:
        error = {"code": -32603, "message": "Initialize failed"}

        def refuse(request):
            answer = {"jsonrpc": "2.0", "id": request.message["id"], "error": error}
            return request.reply(500, json.dumps(answer).encode()) is None

        server.on_post = refuse
        assert "refused to start: Initialize failed\n" in str(await failure_of(server.url))


async def test_agent_with_another_version_is_reported():
    async with rough_server() as server:
        answer = {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": 7}}
        body = json.dumps(answer).encode()
        server.on_post = lambda request: request.reply(200, body, Acp_Connection_Id="c") is None
        assert (await failure_of(server.url, WrongVersionError)).theirs == 7


async def test_server_that_never_answers_times_out():
    async with rough_server() as server:
        server.on_post = lambda request: True
        error = await failure_of(server.url, start_timeout_s=0.5)
        assert "did not answer within 0.5 s" in str(error)


async def test_invalid_url_is_refused_before_connecting():
    assert "has no scheme" in str(await failure_of("localhost", InvalidAddressError, token=TOKEN))


def test_connect_url_sync_works(tmp_path):
    ready = threading.Event()
    urls = []

    async def stay():
        async with scripted_server([steps.Say("a")]) as url:
            urls.append(url)
            ready.set()
            await asyncio.to_thread(done.wait)

    done = threading.Event()
    server = threading.Thread(target=lambda: asyncio.run(stay()))
    server.start()
    try:
        assert ready.wait(20)
        with connect_url_sync(urls[0]) as agent:
            assert agent.new_session(tmp_path).ask("go") == "a"
    finally:
        done.set()
        server.join()
