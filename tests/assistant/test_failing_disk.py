"""A full or broken disk gives its own session a clear error and affects nothing else."""

import asyncio
import errno
import os
import threading

import pytest

from dragoman.errors import ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_LOAD
from dragoman.store import FileStore
from dragoman.store.disk import Disk
from tests.assistant.running import running_agent
from tests.table import each_row


class FailingDisk(Disk):
    """Fails for the files of one session from a given write on."""

    def __init__(self, code):
        self.code = code
        self.session_id = None
        self.left = 0

    def write(self, fd, data):
        if self.session_id is not None and self.session_id in os.readlink(f"/proc/self/fd/{fd}"):
            self.left -= 1
            if self.left < 0:
                raise OSError(self.code, os.strerror(self.code))
        return super().write(fd, data)


@each_row(
    ("code", "words"), [(errno.ENOSPC, "No space left"), (errno.EIO, "Input/output error"), (errno.EDQUOT, "quota")]
)
@each_row("writes", range(3))
async def test_disk_error_ends_the_turn_and_other_sessions_continue(code, words, writes, tmp_path):
    disk = FailingDisk(code)
    store = FileStore(tmp_path / "home", disk=disk)
    script = "- - text: a\n  - delay_s: 0.001\n  - text: b\n  - delay_s: 0.001\n  - text: c\n"
    async with running_agent(tmp_path / "home", script, store=store) as client:
        await client.initialize()
        broken, sound = [await client.new_session(str(tmp_path)) for _ in range(2)]
        for session_id in (broken, sound):
            await client.prompt(session_id, "before")
        client.updates.clear()
        disk.session_id, disk.left = broken, writes
        with pytest.raises(RemoteError) as caught:
            await client.prompt(broken, "during")
        assert caught.value.code == ErrorCode.INTERNAL_ERROR
        assert words in caught.value.data
        assert broken in caught.value.data
        seen = [n.update for n in client.updates]
        with pytest.raises(RemoteError, match="then try again"):
            await client.prompt(broken, "after")
        assert (await client.prompt(sound, "as ever")).stop_reason == "end_turn"
        disk.session_id = None
        assert (await client.prompt(broken, "again")).stop_reason == "end_turn"
    async with running_agent(tmp_path / "home") as client:
        await client.initialize()
        request = v1.LoadSessionRequest(session_id=broken, cwd=str(tmp_path), mcp_servers=[])
        await client.connection.call(SESSION_LOAD, request)
        replayed = [n.update for n in client.updates]
    assert [update for update in seen if update not in replayed] == []


class WaitingDisk(Disk):
    """Blocks the first sync, in its thread, until released."""

    def __init__(self):
        self.waits = threading.Event()
        self.may_sync = threading.Event()
        self.may_sync.set()

    def sync(self, fd):
        if not self.may_sync.is_set() and not self.waits.is_set():
            self.waits.set()
            self.may_sync.wait(30)
        super().sync(fd)


async def test_cancel_during_the_final_sync_is_answered_as_cancelled(tmp_path):
    disk = WaitingDisk()
    store = FileStore(tmp_path / "home", disk=disk)
    async with running_agent(tmp_path / "home", "- - text: a\n", store=store) as client:
        await client.initialize()
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "before")
        disk.may_sync.clear()
        turn = asyncio.ensure_future(client.prompt(session_id, "go"))
        await asyncio.to_thread(disk.waits.wait)
        await client.cancel(session_id)
        await client.new_session(str(tmp_path))  # answered, so the cancel was read
        disk.may_sync.set()
        assert (await turn).stop_reason == "cancelled"
        assert (await client.prompt(session_id, "after")).stop_reason == "end_turn"
    assert client.text(session_id) == "aaa"
