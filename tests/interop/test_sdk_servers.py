"""Our client with the official SDKs' servers, over WebSocket, and over HTTP with event streams."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from dragoman.client import connect_url
from dragoman.client.events import TextChunk, TurnFinished
from dragoman.client.policies import allow_all, deny_all
from dragoman.errors import RemoteError
from tests.interop.peers import node_peer, python_peer
from tests.interop.serving import standing

pytestmark = pytest.mark.parametrize("transport", ["websocket", "http"])


@pytest.fixture(scope="module", params=[python_peer("python_server.py"), node_peer("typescript_server.mjs")])
def server(request, tmp_path_factory):
    with standing(request.param, tmp_path_factory.mktemp("home")) as started:
        yield started


@asynccontextmanager
async def agent_at(server, transport, **options):
    async with asyncio.timeout(50), connect_url(server["url"], transport=transport, **options) as agent:
        yield agent


@pytest.mark.basic
async def test_a_prompt_streams_in_order_before_its_answer(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        session = await agent.new_session(tmp_path)
        for _ in range(3):
            *chunks, done = [event async for event in session.prompt("hello")]
            assert [chunk.text for chunk in chunks] == ["one ", "two ", "three"]
            assert isinstance(done, TurnFinished)


async def test_a_permission_request_is_answered(server, transport, tmp_path):
    for policy, outcome in ((allow_all(), "outcome: selected yes"), (deny_all(), "outcome: selected no")):
        async with agent_at(server, transport, policy=policy) as agent:
            session = await agent.new_session(tmp_path)
            assert await session.ask("permission") == outcome


async def test_session_continues_after_cancelling_a_turn(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        session = await agent.new_session(tmp_path)
        async for event in session.prompt("wait"):
            if isinstance(event, TextChunk):
                session.cancel()
        assert event.stop_reason == "cancelled"
        assert await session.ask("hello") == "one two three"


async def test_concurrent_sessions_do_not_mix(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        sessions = [await agent.new_session(tmp_path) for _ in range(5)]
        answers = await asyncio.gather(*(session.ask("hello") for session in sessions))
        assert answers == ["one two three"] * 5


async def test_load_is_complete_when_it_is_answered(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        for number in range(5):
            loaded = await agent.load_session(f"old-{number}", tmp_path)
            assert [event.text for event in loaded.history] == [f"{number} " for number in range(200)]


async def test_loaded_session_continues(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        loaded = await agent.load_session("old", tmp_path)
        if transport == "http" and agent.info.name == "python-sdk-agent":
            # It opens streams only for its own sessions, and accepts no prompt without one.
            with pytest.raises(RemoteError, match="HTTP 400"):
                await loaded.ask("hello")
        else:
            assert await loaded.ask("hello") == "one two three"


async def test_an_error_of_the_agent_reaches_us(server, transport, tmp_path):
    async with agent_at(server, transport) as agent:
        session = await agent.new_session(tmp_path)
        with pytest.raises(RemoteError) as caught:
            await session.ask("no such turn")
        assert caught.value.data["known"] == ["hello", "permission", "wait"]
