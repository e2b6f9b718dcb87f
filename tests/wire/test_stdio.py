import asyncio
import json
import os
import subprocess
import sys

import pytest
import uvloop

from dragoman.errors import ConnectionClosedError, ProcessDiedError
from dragoman.proc import Supervisor
from dragoman.wire import LineSplitter, Peer, StdioTransport
from dragoman.wire.stdio import READ_BYTES

ECHO = """
import asyncio, sys
from dragoman.wire import Peer, StdioTransport, claim_stdio

class Echo:
    async def request(self, request):
        print("stray print")
        sys.stdout.flush()
        import os; os.system("echo stray child")
        return request.params
    def notification(self, method, params):
        return None

async def main():
    fds = claim_stdio()
    print("stdin is empty:", repr(sys.stdin.read()), file=sys.stderr)
    async with Peer(StdioTransport(*fds), Echo()) as peer:
        await peer.wait_ended()

asyncio.run(main())
"""

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":1}}\n'
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"x": 1}}


class Nothing:
    async def request(self, request):
        return request.params

    def notification(self, method, params):
        return None


def run_echo(**streams):
    return subprocess.run([sys.executable, "-c", ECHO], stderr=subprocess.PIPE, timeout=30, check=True, **streams)


def test_stray_prints_reach_stderr_and_not_the_protocol():
    done = run_echo(input=REQUEST, stdout=subprocess.PIPE)
    assert json.loads(done.stdout) == ANSWER
    assert b"stray print" in done.stderr
    assert b"stray child" in done.stderr
    assert b"stdin is empty: ''" in done.stderr


def test_stdin_and_stdout_may_be_files(tmp_path):
    requests, answers = tmp_path / "in", tmp_path / "out"
    requests.write_bytes(REQUEST.rstrip(b"\n"))
    with requests.open("rb") as stdin, answers.open("wb") as stdout:
        run_echo(stdin=stdin, stdout=stdout)
    assert json.loads(answers.read_text()) == ANSWER


def test_a_large_file_is_read_to_its_end(tmp_path):
    requests, answers = tmp_path / "in", tmp_path / "out"
    text = "x" * (3 * READ_BYTES)
    lines = [json.dumps({"jsonrpc": "2.0", "id": n, "method": "echo", "params": {"x": text}}) for n in range(5)]
    requests.write_text("\n".join(lines))
    with requests.open("rb") as stdin, answers.open("wb") as stdout:
        run_echo(stdin=stdin, stdout=stdout)
    assert {json.loads(line)["id"] for line in answers.read_text().splitlines()} == set(range(5))


def test_stdin_from_dev_null_ends_at_once():
    assert run_echo(stdin=subprocess.DEVNULL, stdout=subprocess.PIPE).stdout == b""


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a coroutine on each of the supported event loops."""
    factory = asyncio.new_event_loop if request.param == "asyncio" else uvloop.new_event_loop

    def run_on(coroutine):
        with asyncio.Runner(loop_factory=factory) as runner:
            return runner.run(asyncio.wait_for(coroutine, 30))

    return run_on


def pipes():
    there_r, there_w = os.pipe()
    back_r, back_w = os.pipe()
    return (back_r, there_w), (there_r, back_w)


def test_two_peers_talk_over_pipes(run):
    async def talk():
        near, far = pipes()
        async with Peer(StdioTransport(*near), Nothing()) as peer, Peer(StdioTransport(*far), Nothing()):
            return bytes(await peer.call("echo", {"x": "y" * 1_000_000}))

    assert len(run(talk())) > 1_000_000


def test_sender_waits_while_the_pipe_is_full(run):
    received = []

    class Counts(Nothing):
        def notification(self, method, params):
            received.append(len(bytes(params)))

    async def flood():
        near, far = pipes()
        reader = StdioTransport(*far)
        async with Peer(StdioTransport(*near), Nothing()) as peer, Peer(reader, Counts()):
            reader.pause_reading()
            sending = asyncio.ensure_future(send(peer))
            for _ in range(200):
                await asyncio.sleep(0)
            assert not sending.done()
            reader.resume_reading()
            await sending
            await peer.call("echo")

    async def send(peer):
        for _ in range(2_000):
            await peer.notify("n", "x" * 1_000)

    run(flood())
    assert len(received) == 2_000


def test_calls_fail_at_once_when_the_peer_closes(run):
    async def call():
        near, (far_read, far_write) = pipes()
        async with Peer(StdioTransport(*near), Nothing()) as peer:
            os.close(far_write)
            try:
                with pytest.raises(ConnectionClosedError):
                    await peer.call("m")
            finally:
                os.close(far_read)

    run(call())


def test_a_peer_that_no_longer_reads_ends_the_connection(run):
    async def write():
        near, (far_read, far_write) = pipes()
        async with Peer(StdioTransport(*near), Nothing()) as peer:
            os.close(far_read)
            await peer.notify("n")
            await peer.wait_ended()
            with pytest.raises(ConnectionClosedError):
                await peer.notify("n")
        os.close(far_write)

    run(write())


def test_closing_is_bounded_if_the_peer_does_not_read(run, monkeypatch):
    monkeypatch.setattr("dragoman.wire.stdio.CLOSE_TIMEOUT_S", 0.01)

    async def write():
        near, far = pipes()
        async with Peer(StdioTransport(*near), Nothing()) as peer:
            for _ in range(100):
                await peer.notify("n", "x" * 1_000)
        for fd in far:
            os.close(fd)

    run(write())


@pytest.mark.parametrize("held", ["", "sleep 600 &"])
def test_a_call_fails_with_the_exit_of_the_child(run, held):
    async def call():
        async with Supervisor() as supervisor:
            child = await supervisor.start(["sh", "-c", f"{held} echo boom >&2; exit 3"])
            async with Peer(StdioTransport.for_child(child), Nothing()) as peer:
                with pytest.raises(ProcessDiedError, match="exited with code 3") as caught:
                    await peer.call("m")
                assert caught.value.stderr_tail == "boom\n"

    run(call())


def test_paused_reader_receives_everything_a_dead_child_wrote(run, monkeypatch):
    monkeypatch.setattr("dragoman.wire.stdio.EXIT_DRAIN_S", 0)
    received = []
    ended = []

    class Slow:
        def lines_received(self, lines):
            received.extend(lines)
            transport.pause_reading()

        def input_ended(self, *, was_file):
            ended.append(was_file)

    async def read():
        nonlocal transport
        async with Supervisor() as supervisor, asyncio.timeout(20), asyncio.TaskGroup() as tasks:
            child = await supervisor.start(["sh", "-c", "seq 20000; sleep 600 & exit 3"])
            transport = StdioTransport.for_child(child)
            transport.start(Slow(), tasks)
            await child.wait()
            while not ended:
                await asyncio.sleep(0)
                transport.resume_reading()
            await transport.close()

    transport = None
    run(read())
    assert received == [b"%d" % number for number in range(1, 20_001)]


def test_torn_last_line_is_not_a_message(run):
    handled = []

    class Notes(Nothing):
        def notification(self, method, params):
            handled.append(method)

    async def die():
        near, (far_read, far_write) = pipes()
        async with Peer(StdioTransport(*near), Notes()) as peer:
            os.write(far_write, b'{"jsonrpc":"2.0","method":"whole"}\n{"jsonrpc":"2.0","method":"torn')
            os.close(far_write)
            await peer.wait_ended()
        os.close(far_read)

    run(die())
    assert handled == ["whole"]


def test_blocking_mode_of_descriptors_is_restored_before_they_close(run):
    async def use():
        near, far = pipes()
        kept = [os.dup(fd) for fd in near]
        async with Peer(StdioTransport(*near), Nothing()):
            assert not any(os.get_blocking(fd) for fd in kept)
        assert all(os.get_blocking(fd) for fd in kept)
        for fd in near:
            with pytest.raises(OSError):
                os.fstat(fd)
        for fd in (*kept, *far):
            os.close(fd)

    run(use())


def test_oversized_line_is_refused_and_the_next_answered(run):
    async def talk():
        near, (far_read, far_write) = pipes()
        async with Peer(StdioTransport(*near, splitter=LineSplitter(1_000)), Nothing()):
            await asyncio.to_thread(os.write, far_write, b"x" * 50_000 + b"\n" + REQUEST)
            answers = b""
            while answers.count(b"\n") < 2:
                answers += await asyncio.to_thread(os.read, far_read, 65_536)
        for fd in (far_read, far_write):
            os.close(fd)
        return [json.loads(line) for line in answers.splitlines()]

    refusal, answer = run(talk())
    assert refusal["error"]["code"] == -32600
    assert "1000 bytes" in refusal["error"]["data"]
    assert answer == ANSWER
