"""Our agent with its home on a disk that is really full, or read-only."""

import json
import os

import pytest

from dragoman.errors import ErrorCode
from dragoman.protocol import v1
from tests.assistant.coming_back import SCRIPT, close, converse, delete, fork, listed, load, resume
from tests.assistant.running import running_agent
from tests.commands import dragoman
from tests.errors import refused

FULL = pytest.mark.parametrize("files", [False, True], ids=["no byte", "no file"])
NO_SPACE = "No space left on device; free some space on that disk, then try again"
LONG = "x" * 5000


def words(error):
    return json.dumps(error.data)


@FULL
async def test_full_disk_refuses_a_new_session_until_there_is_space(tiny_disk, tmp_path, files):
    async with running_agent(tiny_disk.path) as client:
        await client.initialize()
        await client.new_session(str(tmp_path))
        tiny_disk.fill(files=files)
        for _ in range(3):
            error = await refused(client.new_session(str(tmp_path)))
            assert error.code == ErrorCode.INTERNAL_ERROR
            assert NO_SPACE in words(error)
        tiny_disk.free()
        session_id = await client.new_session(str(tmp_path))
        assert (await client.prompt(session_id, "hi")).stop_reason == "end_turn"


@FULL
async def test_session_continues_in_its_process_once_there_is_space(tiny_disk, tmp_path, files):
    async with running_agent(tiny_disk.path, "- - text: a\n- - text: b\n") as client:
        await client.initialize()
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "first")
        await listed(client)  # work after the first turn is done
        tiny_disk.fill(files=files)
        for _ in range(3):
            assert NO_SPACE in words(await refused(client.prompt(session_id, LONG)))
        assert [info.session_id for info in (await listed(client)).sessions] == [session_id]
        await load(client, session_id, tmp_path)
        tiny_disk.free()
        assert (await client.prompt(session_id, "second")).stop_reason == "end_turn"
        client.updates.clear()
        await load(client, session_id, tmp_path)
        said = [u.content.text for u in client.conversation() if isinstance(u, v1.UserMessageChunk)]
    assert said == ["first", "second"]


@FULL
@pytest.mark.parametrize("bring_back", [load, resume])
async def test_session_opened_on_a_full_disk_is_not_locked_afterwards(tiny_disk, tmp_path, files, bring_back):
    session_id, _ = await converse((tmp_path, tiny_disk.path), "hi")
    tiny_disk.fill(files=files)
    async with running_agent(tiny_disk.path, SCRIPT) as client:
        await client.initialize()
        for _ in range(2):
            await bring_back(client, session_id, tmp_path)
            assert NO_SPACE in words(await refused(client.prompt(session_id, LONG)))
            await close(client, session_id)
        tiny_disk.free()
        await bring_back(client, session_id, tmp_path)
        assert (await client.prompt(session_id, "again")).stop_reason == "end_turn"


@FULL
@pytest.mark.parametrize("live", [True, False])
async def test_session_can_be_deleted_from_a_full_disk(tiny_disk, tmp_path, files, live):
    async with running_agent(tiny_disk.path) as client:
        await client.initialize()
        session_id = await client.new_session(str(tmp_path))
        await client.prompt(session_id, "hi")
        await listed(client)
        tiny_disk.fill(files=files)
        await refused(client.prompt(session_id, LONG))
        if not live:
            await close(client, session_id)
        await delete(client, session_id)
        assert (await listed(client)).sessions == []
    assert list(tiny_disk.path.glob("projects/*/*")) == []


async def test_read_only_home_can_be_listed_loaded_and_replayed(tiny_disk, tmp_path):
    session_id, seen = await converse((tmp_path, tiny_disk.path), "hi", "fly")
    tiny_disk.set_read_only()
    async with running_agent(tiny_disk.path, SCRIPT) as client:
        await client.initialize()
        assert [info.session_id for info in (await listed(client)).sessions] == [session_id]
        for _ in range(2):
            client.updates.clear()
            await load(client, session_id, tmp_path)
            await client.wait_for(lambda c: any(isinstance(n.update, v1.AvailableCommandsUpdate) for n in c.updates))
            replayed = client.conversation()
            assert [update for update in replayed if update in seen] == seen
        for attempt in (client.prompt(session_id, "x"), fork(client, session_id, tmp_path), delete(client, session_id)):
            assert "Read-only file system; check" in words(await refused(attempt))
        error = await refused(client.new_session(str(tmp_path)))
        assert "Read-only file system" in words(error)
        assert "DRAGOMAN_HOME" in words(error)
        assert await close(client, session_id) is not None


def test_session_in_a_read_only_home_can_be_shown_and_exported(tiny_disk, tmp_path):
    def run(*arguments):
        return dragoman(*arguments, cwd=tmp_path, env={**os.environ, "DRAGOMAN_HOME": str(tiny_disk.path)})

    made = json.loads(run("run", "hello", "--format", "json").stdout)
    tiny_disk.set_read_only()
    assert made["session_id"] in run("sessions", "list", "--long").stdout
    for action in (["show"], ["load"], ["export", "--format", "html"], ["export", "--format", "json"]):
        done = run("sessions", *action, made["session_id"])
        assert (done.returncode, done.stderr) == (0, "")
        assert "hello" in done.stdout
    refused = run("run", "hello")
    assert refused.returncode == 1
    assert "Read-only file system; check the permissions, or set DRAGOMAN_HOME" in refused.stderr
    assert "Traceback" not in refused.stderr
