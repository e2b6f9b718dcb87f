"""The tap: a client on our stdio, an agent as our child, two pumps between them, and a recorder process.

Recording and judging, and their failures, never delay or change the messages. When the agent exits, we close stdout and
exit with its exit code. When the client disconnects, the agent is stopped like all our children: its stdin is closed,
then SIGTERM, then SIGKILL.

As a proxy in a conductor's chain it has no agent. `chain_proxy` decides where each line of the conductor goes.
"""

import asyncio
import os
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any

from dragoman.check.tap.chain_proxy import ChainProxy
from dragoman.check.tap.feed import Feed, FrameKind
from dragoman.check.tap.pump import Pump, close_stream, read, report_line, wait_broken, write
from dragoman.check.tap.recorder_process import RecorderProcess, TapOptions
from dragoman.proc import EVERYTHING, STDIN_GRACE_S, Child, ProcessExit, Supervisor
from dragoman.text import TextCleaner
from dragoman.wire.framing import LineSplitter

STDIN, STDOUT, STDERR = 0, 1, 2

FEED_END_S = 30.0
"""Time to send the remaining frames to the recorder after the agent's exit, which the client already knows."""


STOP_S = 10.0
"""Time for the agent to stop when we are stopped. Remaining processes end with us."""


class Tap:
    """Records and forwards the conversation. Without a command it is a proxy in a chain.

    Create it before there is an event loop or a thread, because it forks. Raises RecordingError, and OSError if the
    findings file cannot be created.
    """

    def __init__(self, command: Sequence[str], options: TapOptions) -> None:
        self._command = command
        self._recorder = RecorderProcess(command[0] if command else "successor", options)
        self._feed = Feed(self._recorder.pipe)

    async def run(self) -> ProcessExit:
        """Forward everything until the agent or the conductor has ended. Return the exit.

        Raises StartError and CommandNotFoundError.
        """
        if not self._command:
            await ProxyPump(self._feed).run()
            return ProcessExit(0)
        async with Supervisor() as supervisor:
            child = await supervisor.start(self._command, inherit=EVERYTHING, on_stderr=_stderr_passage())
            self._feed.put(FrameKind.EVENT, f"started in {_directory()}".encode())
            passage = _Passage(child, self._feed)
            try:
                return await passage.run()
            except asyncio.CancelledError:
                with suppress(TimeoutError):
                    await asyncio.wait_for(passage.stop(grace_s=0), STOP_S)
                raise

    def finish(self) -> None:
        """Wait for the recorder to write the summary, within a timeout."""
        left = self._feed.close(FEED_END_S)
        if left:
            report_line(f"the last {left:,} bytes were passed on but neither recorded nor judged, because time ran out")
        if not self._recorder.wait():
            report_line("please report this; everything was still passed on")


class ProxyPump:
    """Reads the lines of a conductor in a thread, and writes the proxy's lines to it."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._proxy = ChainProxy()
        self._splitter = LineSplitter()
        self._has_ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    async def run(self) -> None:
        """Pump until the conductor closes a side."""
        self._feed.put(FrameKind.EVENT, b"started")
        threading.Thread(target=self._pump, name="tap proxy", daemon=True).start()
        await self._has_ended.wait()

    def _pump(self) -> None:
        try:
            while (data := read(STDIN)) and write(STDOUT, self._relay(data)):
                pass
        finally:
            with suppress(RuntimeError):  # the loop has ended before this thread
                self._loop.call_soon_threadsafe(self._has_ended.set)

    def _relay(self, data: bytes) -> bytes:
        relayed = [self._proxy.relay(line) for line in self._splitter.feed(data)]
        for each in relayed:
            if each.shown:
                self._feed.put(each.kind, each.shown + b"\n")
        return b"".join(each.line + b"\n" for each in relayed if each.line)


class _Passage:
    """Copies bytes both ways between client and agent until the agent exits."""

    def __init__(self, child: Child, feed: Feed) -> None:
        self._child = child
        self._loop = asyncio.get_running_loop()
        self._client_gone, self._agent_silent = asyncio.Event(), asyncio.Event()
        stdout, self._stdin = child.claim_stdio()
        self._feed = feed
        self._inward = Pump(STDIN, self._stdin, FrameKind.CLIENT, feed)
        self._outward = Pump(stdout, STDOUT, FrameKind.AGENT, feed)
        self._stdout = stdout
        self._wake, self._waker = os.pipe()

    async def run(self) -> ProcessExit:
        self._inward.start(self._on_client_end)
        self._outward.start(self._on_agent_end)
        await _first(self._child.wait(), self._client_gone.wait())
        return await self.stop()

    async def stop(self, grace_s: float = STDIN_GRACE_S) -> ProcessExit:
        """Stop the agent and wait until the client has received its last output."""
        close_stream(self._stdin)
        ran = self._child.exit is None
        ended = await self._child.stop(grace_s=grace_s)
        await self._agent_silent.wait()
        self._feed.put(FrameKind.EVENT, _describe(ended, by_us=ran))
        return ended

    def _on_client_end(self) -> None:
        close_stream(self._stdin)
        if self._inward.broken:  # the agent reads no more, so close the client's side as well
            close_stream(STDIN)
        else:
            self._feed.put(FrameKind.EVENT, b"stdin closed")
        # A client may close our stdin and continue to read. It has disconnected when our stdout has no reader.
        if wait_broken(STDOUT, self._wake):
            self._call_in_loop(self._client_gone.set)

    def _on_agent_end(self) -> None:
        close_stream(self._stdout)
        os.close(self._waker)
        if self._outward.broken:
            self._call_in_loop(self._client_gone.set)
        else:
            close_stream(STDOUT)
        self._call_in_loop(self._agent_silent.set)

    def _call_in_loop(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop has ended before this thread
            self._loop.call_soon_threadsafe(callback)


def exit_code(ended: ProcessExit) -> int:
    """Return the exit code of a process as a shell reports it."""
    return 128 + (ended.signal or 0) if ended.code is None else ended.code


def _describe(ended: ProcessExit, *, by_us: bool) -> bytes:
    if ended.code is not None:
        return b"exited %d" % ended.code
    return b"killed" if by_us else b"exited %d" % -(ended.signal or 0)


def _stderr_passage() -> Callable[[bytes], None]:
    """Return the function for the agent's stderr: unchanged to a program, made safe for a terminal."""
    if not os.isatty(STDERR):
        return _pass_stderr
    decode, cleaner = getincrementaldecoder("utf-8")("replace").decode, TextCleaner()
    return lambda data: _pass_stderr(cleaner.feed(decode(data)).encode())


def _pass_stderr(data: bytes) -> None:
    write(STDERR, data)


def _directory() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 -- the event is a plain string
    except OSError:
        return "."


async def _first(*waits: Coroutine[Any, Any, object]) -> None:
    """Wait until one of them is done."""
    tasks = [asyncio.ensure_future(each) for each in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
