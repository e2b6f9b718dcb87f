"""The updates of a session reach its client in their order, and notices of a failed log reach it at all."""

import asyncio
import errno
import os

import pytest

from dragoman.agent.update_sender import UpdateSender
from dragoman.errors import RemoteError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection, Routes
from dragoman.protocol.methods import FS_READ_TEXT_FILE, SESSION_LOAD, SESSION_REQUEST_PERMISSION
from dragoman.store import FileStore, Header
from dragoman.store.disk import Disk
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from tests.agent.connecting import make_agent

ID = "00000000-0000-4000-8000-000000000001"


async def test_a_question_does_not_overtake_the_updates_that_a_replay_holds_back(tmp_path):
    near, far = memory_pair()
    seen_before = []

    def decide(_):
        seen_before.extend(client.updates)
        return "allow"

    async with ScriptedClient(near, decide=decide) as client, Connection(far, Routes("agent")) as connection:
        store = FileStore(tmp_path / "home")
        sender = UpdateSender(connection, ID)
        sender.use(await store.create(Header(ID, str(tmp_path), [], "2026-11-17T00:00:00.000Z"), None))
        sender.hold()
        sender.put(v1.ToolCall(tool_call_id="c", title="Write"))
        question = v1.RequestPermissionRequest(
            session_id=ID,
            tool_call=v1.ToolCallUpdate(tool_call_id="c"),
            options=[v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
        )
        asking = asyncio.create_task(sender.call(SESSION_REQUEST_PERMISSION, question))
        with pytest.raises(RemoteError):  # a round trip: a question that was sent is there by now
            await connection.call(FS_READ_TEXT_FILE, v1.ReadTextFileRequest(session_id=ID, path="/a"))
        assert client.permissions == []
        sender.release()
        await asking
        await store.close()
    assert [notification.update.tool_call_id for notification in seen_before] == ["c"]


class UnmendableDisk(Disk):
    """Cannot cut off the torn end of a log."""

    def truncate(self, fd, size):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


async def test_a_log_that_cannot_be_mended_is_shown_with_a_notice_that_it_can_only_be_read(tmp_path):
    async def answer(turn):
        await turn.say("hello")

    async with make_agent(tmp_path, answer).connect() as remote:
        session = await remote.new_session(tmp_path)
        await session.run("x")
        session_id = session.id
    [log] = (tmp_path / "home").rglob(f"session-{session_id}.jsonl")
    log.write_bytes(log.read_bytes() + b'{"jsonrpc":"2.0","met')

    near, far = memory_pair()
    agent = make_agent(tmp_path, answer, store=lambda: FileStore(tmp_path / "home", disk=UnmendableDisk()))
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(agent.serve(far))
        async with ScriptedClient(near) as client:
            await client.initialize()
            request = v1.LoadSessionRequest(session_id=session_id, cwd=str(tmp_path), mcp_servers=[])
            await client.connection.call(SESSION_LOAD, request)
            assert client.text() == "hello"
            assert any("can only be read" in notice for notice in client.notices())
