"""Requests that arrive while a session is being closed wait for the close and are not refused."""

import asyncio

import pytest

from dragoman.errors import ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_CLOSE, SESSION_DELETE, SESSION_LIST, SESSION_LOAD, SESSION_RESUME
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent


@pytest.mark.parametrize("way", ["load", "resume", "delete", "close"])
async def test_request_during_a_close_waits_for_the_close(tmp_path, way):
    closing, may_close = asyncio.Event(), asyncio.Event()

    async def answer(turn):
        await turn.say("hello")

    agent = make_agent(tmp_path, answer)

    @agent.on_close
    async def close(session):
        closing.set()
        await may_close.wait()

    near, far = memory_pair()
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.serve(far))
        async with ScriptedClient(near) as client:
            await client.initialize()
            session_id = await client.new_session(str(tmp_path))
            await client.prompt(session_id, "x")
            place = {"session_id": session_id, "cwd": str(tmp_path), "mcp_servers": []}
            method, request = {
                "load": (SESSION_LOAD, v1.LoadSessionRequest(**place)),
                "resume": (SESSION_RESUME, v1.ResumeSessionRequest(**place)),
                "delete": (SESSION_DELETE, v1.DeleteSessionRequest(session_id=session_id)),
                "close": (SESSION_CLOSE, v1.CloseSessionRequest(session_id=session_id)),
            }[way]
            first = tasks.create_task(
                client.connection.call(SESSION_CLOSE, v1.CloseSessionRequest(session_id=session_id))
            )
            await closing.wait()
            second = tasks.create_task(client.connection.call(method, request))
            await client.connection.call(SESSION_LIST, v1.ListSessionsRequest())
            may_close.set()
            await first
            await second
            if way in ("load", "resume"):
                assert (await client.prompt(session_id, "y")).stop_reason == "end_turn"
            else:
                with pytest.raises(RemoteError) as caught:
                    await client.prompt(session_id, "y")
                assert caught.value.code == ErrorCode.RESOURCE_NOT_FOUND
