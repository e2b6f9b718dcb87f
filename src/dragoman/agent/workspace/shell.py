"""Commands that we run ourselves: `sh -c`, no input, both outputs in one, and nobody left behind at the end."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec

from dragoman.agent.tools.content import code
from dragoman.agent.tools.tool import ShowProgress, ToolFailure
from dragoman.agent.workspace.client_side import CLEANUP_TIMEOUT_S
from dragoman.agent.workspace.output import BoundedOutput
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosed, LogFailed, StartError
from dragoman.proc import Child, Exit, Supervisor
from dragoman.proc.command import without_secrets
from dragoman.protocol import v1

Supervise = Callable[[], Awaitable[Supervisor]]
"""Gives an open supervisor, which somebody else closes; called for each command, so the first may open it."""

TERM_GRACE_S = 0.5
"""Between SIGTERM and SIGKILL: a cancelled turn has to end at once, and a program can still remove its lock file."""

FIRST_LIVE_S = 0.1
LAST_LIVE_S = 2.0
"""Output is shown soon, then ever more seldom: every update is logged in full, and a build may run for an hour."""

_MERGED = 'exec sh -c "$1" 2>&1'


class CommandEnd(msgspec.Struct, frozen=True):
    """How a command ended, and what it wrote."""

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
    """Runs commands as children of ours. Whoever is still there when the shell ends, or we are cancelled, is killed."""

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
    """Show what a command had written when it was cancelled."""
    # A client that does not keep up, or is gone, keeps what it was shown before.
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


async def _show(exited: asyncio.Future[Exit], output: BoundedOutput, progress: ShowProgress) -> None:
    pause_s, shown = FIRST_LIVE_S, 0
    while not (await asyncio.wait({exited}, timeout=pause_s))[0]:
        if output.total_bytes != shown:
            shown = output.total_bytes
            await progress([code(output.live)])
            pause_s = min(2 * pause_s, LAST_LIVE_S)


def _end(output: BoundedOutput, ended: Exit, *, timed_out: bool) -> CommandEnd:
    text = output.text
    return CommandEnd(text, [code(text)] if text else [], output.cut, ended.code, ended.signal_name, timed_out)
