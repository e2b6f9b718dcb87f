"""Agents over streams that the caller opened, such as pipes and sockets."""

import asyncio
import socket
import subprocess
import threading

import pytest

from dragoman.client import connect, connect_sync
from dragoman.client.errors import ConnectionClosedError, NotAnAgentError, StartTimeoutError
from dragoman.testing import ScriptedAgent, steps
from dragoman.wire import StreamTransport
from tests.client.driving import END
from tests.commands import raw, scripted
from tests.waiting import until

PIPES = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}


async def start(command):
    return await asyncio.create_subprocess_exec(*command, **PIPES)


async def test_agent_works_over_the_pipes_of_a_process():
    process = await start(scripted([steps.Say("over "), steps.Say("pipes")]))
    async with asyncio.timeout(30), connect(stream=(process.stdout, process.stdin)) as agent:
        assert await (await agent.new_session("/")).ask("go") == "over pipes"
        assert process.returncode is None
    assert await asyncio.wait_for(process.wait(), 30) == 0  # because leaving closed its stdin


async def test_agent_works_over_a_socket():
    ours, theirs = socket.socketpair()
    agent = ScriptedAgent(StreamTransport(*await asyncio.open_connection(sock=theirs)), [[steps.Say("over a socket")]])
    serving = asyncio.create_task(agent.serve())
    stream = await asyncio.open_connection(sock=ours)
    async with asyncio.timeout(30), connect(stream=stream) as remote:
        assert await (await remote.new_session("/")).ask("go") == "over a socket"
    await asyncio.wait_for(serving, 30)


async def test_long_messages_pass_both_ways():
    process = await start(raw({}, [{"long": 3_000_000}, END]))
    async with asyncio.timeout(30), connect(stream=(process.stdout, process.stdin)) as agent:
        session = await agent.new_session("/")
        assert len(await session.ask("y" * 3_000_000)) == 3_000_000
    await process.wait()


async def test_slow_reader_pauses_the_agent():
    process = await start(scripted([steps.Say(str(number)) for number in range(3000)]))
    async with asyncio.timeout(30), connect(stream=(process.stdout, process.stdin)) as agent:
        turn = (await agent.new_session("/")).prompt("go")
        await anext(turn)
        while not turn.is_held:
            await asyncio.sleep(0)
        assert (await turn).text == "".join(map(str, range(3000)))
    await process.wait()


async def test_a_dead_stream_fails_every_pending_call_at_once():
    process = await start(scripted([steps.Say("a"), steps.WaitForCancel()]))
    async with asyncio.timeout(30), connect(stream=(process.stdout, process.stdin)) as agent:
        sessions = [await agent.new_session("/"), await agent.new_session("/")]
        turns = [session.prompt("go") for session in sessions]
        for turn in turns:
            await anext(turn)
        process.kill()
        results = [await turn for turn in turns]
        assert [type(each.error) for each in results] == [ConnectionClosedError] * 2
        assert "closed the stream" in str(results[0].error)
        with pytest.raises(ConnectionClosedError):
            await agent.new_session("/")
    await process.wait()


async def test_broken_stream_during_a_write_is_reported():
    class Broken:
        def __init__(self, writer):
            self.writer = writer
            self.broken = False

        def write(self, data):
            if self.broken:
                raise BrokenPipeError(32, "Broken pipe")
            self.writer.write(data)

        def __getattr__(self, name):
            return getattr(self.writer, name)

    process = await start(scripted([steps.WaitForCancel()]))
    writer = Broken(process.stdin)
    async with asyncio.timeout(30), connect(stream=(process.stdout, writer)) as agent:
        writer.broken = True
        with pytest.raises(ConnectionClosedError, match="the stream failed: Broken pipe"):
            await agent.new_session("/")
    await process.wait()


async def test_a_stream_without_an_agent_is_refused(tmp_path):
    greeted = tmp_path / "greeted"
    process = await start(["sh", "-c", 'echo hello; touch "$0"; cat >/dev/null', str(greeted)])
    await until(greeted.exists)
    with pytest.raises(NotAnAgentError, match="hello"):
        async with connect(stream=(process.stdout, process.stdin), start_timeout_s=0.5):
            pass
    await process.wait()
    silent = await start(["sleep", "60"])
    with pytest.raises(StartTimeoutError):
        async with connect(stream=(silent.stdout, silent.stdin), start_timeout_s=0.2):
            pass
    silent.kill()
    await silent.wait()
    gone = await start(["true"])
    with pytest.raises(NotAnAgentError, match="ended before it answered"):
        async with connect(stream=(gone.stdout, gone.stdin)):
            pass
    await gone.wait()


@pytest.mark.parametrize("arguments", [{}, {"command": ["x"], "stream": (1, 2)}, {"stream": (1, 2), "cwd": "/"}])
async def test_connect_needs_a_command_or_a_stream(arguments):
    with pytest.raises(TypeError, match="stream"):
        async with connect(**arguments):
            pass


def test_popen_pipes_work_synchronously():
    command = scripted([steps.Say("a"), steps.Say("b")])
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        with connect_sync(stream=(process.stdout, process.stdin)) as agent:
            assert agent.new_session("/").run("go", timeout_s=30).text == "ab"
        process.stdin.close()
        assert process.wait(30) == 0
    assert "dragoman" not in [thread.name for thread in threading.enumerate()]
