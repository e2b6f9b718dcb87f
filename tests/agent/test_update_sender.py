"""Updates of a session reach its client in order, and notices reach it even after the log has failed."""

import asyncio
import errno
import os

import pytest

from dragoman.agent.connection.update_sender import UpdateSender
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


QUESTION = v1.RequestPermissionRequest(
    session_id=ID,
    tool_call=v1.ToolCallUpdate(tool_call_id="c"),
    options=[v1.PermissionOption(option_id="yes", name="Yes", kind="allow_once")],
)


async def test_nothing_overtakes_an_update_during_its_commit(tmp_path, another_postgres_store):
    near, far = memory_pair()
    seen_before = []

    def decide(_):
        seen_before.extend(notification.update for notification in client.updates)
        return "allow"

    async with ScriptedClient(near, decide=decide) as client, Connection(far, Routes("agent")) as connection:
        log = await another_postgres_store().create(Header(ID, str(tmp_path), [], "2026-11-17T00:00:00.000Z"), None)
        sender = UpdateSender(connection, ID)
        sender.use_log(log)
        sender.put(v1.ToolCall(tool_call_id="c", title="Write"))
        sender.flush()
        written = log.flush()
        while not written.done():  # ready to run when the commit completes
            await asyncio.sleep(0)
        sender.send_unlogged(v1.CurrentModeUpdate(current_mode_id="ask"))
        await sender.call(SESSION_REQUEST_PERMISSION, QUESTION)
    assert [type(update) for update in seen_before] == [v1.ToolCall, v1.CurrentModeUpdate]


async def test_permission_request_does_not_overtake_held_updates(tmp_path):
    near, far = memory_pair()
    seen_before = []

    def decide(_):
        seen_before.extend(client.updates)
        return "allow"

    async with ScriptedClient(near, decide=decide) as client, Connection(far, Routes("agent")) as connection:
        store = FileStore(tmp_path / "home")
        sender = UpdateSender(connection, ID)
        sender.use_log(await store.create(Header(ID, str(tmp_path), [], "2026-11-17T00:00:00.000Z"), None))
        sender.hold()
        sender.put(v1.ToolCall(tool_call_id="c", title="Write"))
        asking = asyncio.create_task(sender.call(SESSION_REQUEST_PERMISSION, QUESTION))
        with pytest.raises(RemoteError):  # a round trip, after which a sent request would have arrived
            await connection.call(FS_READ_TEXT_FILE, v1.ReadTextFileRequest(session_id=ID, path="/a"))
        assert client.permissions == []
        sender.release()
        await asking
        await store.close()
    assert [notification.update.tool_call_id for notification in seen_before] == ["c"]


class UnmendableDisk(Disk):
    """A disk that cannot cut off the torn end of a log."""

    def truncate(self, fd, size):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


async def test_unrepairable_log_is_shown_as_read_only(tmp_path):
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
            assert any("is read-only" in notice for notice in client.notices())
