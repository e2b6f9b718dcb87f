"""Commands that we run ourselves: `sh -c`, no input, both outputs in one, and no process left behind at the end.

Of a long output the beginning and the end are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from dragoman.agent.prepared_call import ShowProgress, ToolFailure, code
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosed, LogFailed, StartError
from dragoman.proc import Child, ProcessExit, Supervisor
from dragoman.proc.command import without_secrets
from dragoman.proc.pipes import skip_continuation
from dragoman.protocol import v1

CLEANUP_TIMEOUT_S = 2.0
"""Longest time to release resources: a cancelled turn waits for it."""

HEAD_BYTES = 8 * 1024
"""The beginning shows the command and its first failure."""

TAIL_BYTES = 24 * 1024
"""The end holds the summary; with the head about 8,000 tokens, which a turn can take many times over."""

LIVE_BYTES = 4 * 1024
"""A screen or two: each update is sent, and logged, in full."""


class BoundedOutput:
    """Takes any number of bytes and keeps few."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> bool:
        """Take some output; more may follow."""
        self.total_bytes += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL_BYTES:  # seldom, because each time moves it all
            del self._tail[:-TAIL_BYTES]
        return True

    @property
    def text(self) -> str:
        """All of it, or its beginning and its end with a word between them that says how much is missing."""
        tail = self._tail[-TAIL_BYTES:]
        missing = self.total_bytes - len(self._head) - len(tail)
        if not missing:
            return _decode(self._head + tail)
        return f"{_decode_start(self._head)}\n[… {missing:,} bytes left out …]\n{_decode_end(tail)}"

    @property
    def cut(self) -> bool:
        """Whether something is missing."""
        return self.total_bytes > HEAD_BYTES + TAIL_BYTES

    @property
    def live(self) -> str:
        """The last of it, while more may come."""
        latest = (self._head + self._tail)[-LIVE_BYTES:]
        return _decode(latest) if len(latest) == self.total_bytes else f"[…]\n{_decode_end(latest)}"


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")


def _decode_start(data: bytearray) -> str:
    """Decode bytes that were cut at their end; a character that was cut in two is dropped, not shown as damage."""
    return _decode(data).removesuffix("\N{REPLACEMENT CHARACTER}")


def _decode_end(data: bytearray) -> str:
    """Decode bytes that were cut at their beginning, in the same way."""
    return _decode(skip_continuation(data))


Supervise = Callable[[], Awaitable[Supervisor]]
"""Returns an open supervisor, which its owner closes; called for each command, so the first call may open it."""

TERM_GRACE_S = 0.5
"""Between SIGTERM and SIGKILL: a cancelled turn has to end at once, and a program can still remove its lock file."""

FIRST_LIVE_S = 0.1
LAST_LIVE_S = 2.0
"""Output is shown soon, then ever more seldom: every update is logged in full, and a build may run for an hour."""

_MERGED = 'exec sh -c "$1" 2>&1'


class CommandEnd(msgspec.Struct, frozen=True):
    """The end of a command, and its output."""

    output: str
    content: Sequence[v1.ToolCallContent]
    cut: bool = False
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False


class CommandRunner(Protocol):
    """A way to run commands."""

    async def run(self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float) -> CommandEnd:
        """Run a text of the shell to its end; raises ToolFailure when it cannot be started."""
        ...


class Shell:
    """Runs commands as children of ours. All processes of a command are killed when its shell ends."""

    def __init__(self, supervise: Supervise) -> None:
        self._supervise = supervise

    async def run(self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float) -> CommandEnd:
        """Run a text of the shell to its end; raises ToolFailure when it cannot be started."""
        output = BoundedOutput()
        child = await self._start(command, cwd)
        pipe = child.read_stdout(output.add)
        try:
            try:
                in_time = await _follow(child, output, progress, timeout_s)
            finally:
                ended = await finish(child.stop(grace_s=0, term_s=TERM_GRACE_S))
        except asyncio.CancelledError:
            await finish(show_last(output.text, progress))
            raise
        finally:
            pipe.close()
        return _end(output, ended, timed_out=not in_time)

    async def _start(self, command: str, cwd: str) -> Child:
        supervisor = await self._supervise()
        try:
            return await supervisor.start(
                ["/bin/sh", "-c", _MERGED, "sh", command], cwd=cwd, env=without_secrets(), inherit=()
            )
        except StartError as error:
            raise ToolFailure(f"the command could not be started: {error.reason}") from None


async def show_last(text: str, progress: ShowProgress) -> None:
    """Show the output of a command that was cancelled."""
    # A client that does not keep up, or is gone, keeps the output that it was shown before.
    with suppress(TimeoutError, ConnectionClosed, LogFailed):
        async with asyncio.timeout(CLEANUP_TIMEOUT_S):
            await progress([code(text)] if text else [])


async def _follow(child: Child, output: BoundedOutput, progress: ShowProgress, timeout_s: float) -> bool:
    """Show output until the command has ended; False when it did not end in time."""
    exited = asyncio.ensure_future(child.wait())
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            await _show(exited, output, progress)
    except TimeoutError:
        if not limit.expired():
            raise
        return False
    finally:
        exited.cancel()
    return True


async def _show(exited: asyncio.Future[ProcessExit], output: BoundedOutput, progress: ShowProgress) -> None:
    pause_s, shown = FIRST_LIVE_S, 0
    while not (await asyncio.wait({exited}, timeout=pause_s))[0]:
        if output.total_bytes != shown:
            shown = output.total_bytes
            await progress([code(output.live)])
            pause_s = min(2 * pause_s, LAST_LIVE_S)


def _end(output: BoundedOutput, ended: ProcessExit, *, timed_out: bool) -> CommandEnd:
    text = output.text
    return CommandEnd(text, [code(text)] if text else [], output.cut, ended.code, ended.signal_name, timed_out)
