"""A step of a connection's end that hangs or fails does not keep anything else open."""

import asyncio
import logging

import pytest

from dragoman.agent import StdioServer
from dragoman.agent.sessions import sessions
from dragoman.store import FileStore
from tests.agent.connecting import make_agent, session_with
from tests.mcp.servers.commands import scripted
from tests.proc.processes import alive


class WatchedStore(FileStore):
    """A store that records its close and can be made to fail."""

    is_closed = False
    fails = False

    async def close(self):
        await super().close()
        self.is_closed = True

    async def create(self, header, settings=None):
        log = await super().create(header, settings)
        if self.fails:
            close = log.close

            async def fail():
                await close()
                raise OSError("the disk is gone")

            log.close = fail
        return log


async def say(turn):
    await turn.mcp_tools()
    await turn.say("hello")


async def test_slow_session_does_not_keep_servers_or_the_store_open(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(sessions, "FREE_TIMEOUT_S", 0.0)
    pids, store = tmp_path / "pids", WatchedStore(tmp_path / "home")
    command, *args = scripted(pid_file=str(pids), ignore_eof=True)
    agent = make_agent(tmp_path, say, store=lambda: store, mcp_servers=[StdioServer("own", command, tuple(args))])

    @agent.on_close
    async def hang(session):
        await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING, "dragoman.agent"):
        async with session_with(agent, tmp_path) as session:
            await session.run("x")
    assert store.is_closed
    assert [pid for pid in pids.read_text().split() if alive(int(pid))] == []
    assert f"closing the session {session.id} was abandoned" in caplog.text


async def test_session_that_cannot_be_closed_is_logged(tmp_path, caplog):
    store = WatchedStore(tmp_path / "home")
    store.fails = True
    with caplog.at_level(logging.WARNING, "dragoman.agent"):
        async with session_with(make_agent(tmp_path, say, store=lambda: store), tmp_path) as session:
            await session.run("x")
    assert store.is_closed
    assert f"closing the session {session.id} failed" in caplog.text
    assert "the disk is gone" in caplog.text


@pytest.mark.parametrize("when", ["turn", "idle"])
async def test_normal_end_of_a_connection_logs_nothing(tmp_path, caplog, when):
    begun = asyncio.Event()

    async def answer(turn):
        await turn.say("hello")
        begun.set()
        if when == "turn":
            await asyncio.Event().wait()

    with caplog.at_level(logging.WARNING, "dragoman.agent"):
        async with session_with(make_agent(tmp_path, answer), tmp_path) as session:
            running = asyncio.create_task(session.run("x"))
            await begun.wait()
            if when == "idle":
                await running
    await asyncio.wait([running])
    running.exception()
    assert caplog.records == []
