"""Commands that we run ourselves: `sh -c`, without input, with both outputs merged, and without leftover processes.

The beginning and the end of a long output are kept.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from dragoman.agent.turns.prepared_call import ShowProgress, ToolError, code, text_content
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosedError, LogError, StartError
from dragoman.proc import Child, ProcessExit, Supervisor
from dragoman.proc.command import without_secrets
from dragoman.proc.pipes import skip_continuation
from dragoman.protocol import v1

if TYPE_CHECKING:
    from dragoman.sandbox.sandbox import Sandbox

CLEANUP_TIMEOUT_S = 2.0
"""The longest time to release resources. A cancelled turn waits for it."""

HEAD_BYTES = 8 * 1024
"""The beginning shows the command and its first failure."""

TAIL_BYTES = 24 * 1024
"""The end has the summary. Together with the head this is about 8,000 tokens, which fits a turn many times."""

LIVE_BYTES = 4 * 1024
"""One or two screens. Each update is sent and logged in full."""


class BoundedOutput:
    """Receives any number of bytes and keeps a bounded part of them."""

    def __init__(self) -> None:
        self.total_bytes = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, data: bytes) -> bool:
        """Append output. Always return True, because more may follow."""
        self.total_bytes += len(data)
        room = HEAD_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        if len(self._tail) > 2 * TAIL_BYTES:  # not at every write, because this moves all kept bytes
            del self._tail[:-TAIL_BYTES]
        return True

    @property
    def text(self) -> str:
        """The whole output, or its beginning and end with a note that says how much is missing between them."""
        tail = self._tail[-TAIL_BYTES:]
        missing = self.total_bytes - len(self._head) - len(tail)
        if not missing:
            return _decode(self._head + tail)
        return f"{_decode_start(self._head)}\n[… {missing:,} bytes were cut …]\n{_decode_end(tail)}"

    @property
    def cut(self) -> bool:
        """Whether a part of the output is missing."""
        return self.total_bytes > HEAD_BYTES + TAIL_BYTES

    @property
    def live(self) -> str:
        """The last part of the output, while more may follow."""
        latest = (self._head + self._tail)[-LIVE_BYTES:]
        return _decode(latest) if len(latest) == self.total_bytes else f"[…]\n{_decode_end(latest)}"


def _decode(data: bytes | bytearray) -> str:
    return data.decode(errors="replace")


def _decode_start(data: bytearray) -> str:
    """Decode bytes that were cut at their end. Drop a character that was cut in two."""
    return _decode(data).removesuffix("\N{REPLACEMENT CHARACTER}")


def _decode_end(data: bytearray) -> str:
    """Decode bytes that were cut at their beginning. Drop a character that was cut in two."""
    return _decode(skip_continuation(data))


Supervise = Callable[[], Awaitable[Supervisor]]
"""Returns an open supervisor, which its owner closes. It is called per command, and the first call may open it."""

TERM_GRACE_S = 0.5
"""The time between SIGTERM and SIGKILL. A cancelled turn must end soon, but a program can remove its lock file."""

FIRST_LIVE_S = 0.1
LAST_LIVE_S = 2.0
"""Output is shown soon, and then less and less often, because every update is logged and a build may take an hour."""

NO_OUTPUT = "[no output]"

_MERGED = 'exec sh -c "$1" 2>&1'


class CommandResult(msgspec.Struct, frozen=True):
    """The result of a command, with its output."""

    output: str
    content: Sequence[v1.ToolCallContent]
    cut: bool = False
    exit_code: int | None = None
    signal: str | None = None
    timed_out: bool = False
    cancelled: bool = False
    """Whether the user cancelled only this command, by `terminal/cancel` of version 2. The turn continues."""
    renamed: Sequence[tuple[str, str]] = ()
    """The new active files that the sandbox renamed: pairs of the old and the new path."""


class CommandRunner(Protocol):
    """Runs commands."""

    async def run(self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float) -> CommandResult:
        """Run a shell command to its end. Raises ToolError if it cannot be started."""
        ...


class _OwnTerminal:
    """The terminal in which a client of version 2 sees our command (see `protocol.translate.terminal`)."""

    def __init__(self, command: str, cwd: str, *, offers_cancel: bool) -> None:
        self.id = f"terminal-{uuid.uuid4()}"
        self.cancelled = asyncio.get_running_loop().create_future()
        self._offers_cancel = offers_cancel
        self._unsent: dict[str, Any] = {"command": command, "cwd": cwd}
        """The fields that the client has not received yet."""
        if offers_cancel:
            self._unsent["capabilities"] = {"cancel": {}}

    def cancel(self) -> bool:
        """Request the cancellation once. Return whether the command was running."""
        if self.cancelled.done():
            return False
        self.cancelled.set_result(None)
        return True

    def begin(self) -> list[v1.ToolCallContent]:
        """Return the content for the start, if the client can cancel the command. Others see its first output."""
        return [self._content(text_content(""))] if self._offers_cancel else []

    def show(self, text: str) -> list[v1.ToolCallContent]:
        """Return the content for the output so far."""
        return [self._content(code(text))]

    def end(self, text: str, ended: ProcessExit) -> list[v1.ToolCallContent]:
        """Return the content for the whole output and the exit. It is empty for a silent, never shown command."""
        if not text and not self._offers_cancel:
            return []
        status = {"exitCode": ended.code, "signal": ended.signal_name}
        self._unsent["exitStatus"] = {name: value for name, value in status.items() if value is not None}
        if self._offers_cancel:
            self._unsent["capabilities"] = None
        return [self._content(code(text) if text else text_content(NO_OUTPUT))]

    def _content(self, content: v1.Content) -> v1.Content:
        terminal, self._unsent = {"terminalId": self.id, **self._unsent}, {}
        return msgspec.structs.replace(content, meta={"dragoman/v2": {"terminal": terminal}})


class Shell:
    """Runs commands as child processes. All processes of a command are killed when its shell ends.

    `offers_cancel` says whether the client can cancel a single command.
    """

    def __init__(self, supervise: Supervise, *, offers_cancel: bool = False) -> None:
        self._supervise = supervise
        self._offers_cancel = offers_cancel
        self._running: dict[str, _OwnTerminal] = {}

    async def run(
        self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float, sandbox: "Sandbox | None" = None
    ) -> CommandResult:
        """Run a shell command to its end, in a sandbox if there is one. Raises ToolError if it cannot be started."""
        output = BoundedOutput()
        terminal = _OwnTerminal(command, cwd, offers_cancel=self._offers_cancel)
        child = await self._start(command, cwd, sandbox)
        pipe = child.read_stdout(output.add)
        try:
            try:
                in_time = await self._follow(child, terminal, output, progress, timeout_s)
            finally:
                ended, renamed = await finish(_stop(child, sandbox))
        except asyncio.CancelledError:
            await finish(show_last(terminal.end(output.text, child.exit or ProcessExit()), progress))
            raise
        finally:
            pipe.close()
        return _end(terminal, output, ended, timed_out=not in_time, renamed=renamed)

    def cancel(self, terminal_id: str) -> bool:
        """Cancel the command in a terminal. Return whether one was running. `run` then returns its result."""
        terminal = self._running.get(terminal_id)
        return terminal is not None and terminal.cancel()

    async def _follow(
        self, child: Child, terminal: _OwnTerminal, output: BoundedOutput, progress: ShowProgress, timeout_s: float
    ) -> bool:
        """Show output until the command has ended or is cancelled. Return False if it did not end in time."""
        exited = asyncio.ensure_future(child.wait())
        limit = asyncio.timeout(timeout_s)
        self._running[terminal.id] = terminal
        try:
            async with limit:
                await _show(exited, terminal, output, progress)
        except TimeoutError:
            if not limit.expired():
                raise
            return False
        finally:
            del self._running[terminal.id]
            exited.cancel()
        return True

    async def _start(self, command: str, cwd: str, sandbox: "Sandbox | None") -> Child:
        supervisor = await self._supervise()
        words = ["/bin/sh", "-c", _MERGED, "sh", command]
        if sandbox is not None:
            from dragoman.sandbox.sandbox import SandboxUnavailableError

            try:
                words = await asyncio.to_thread(sandbox.wrap, words, cwd)
            except SandboxUnavailableError as error:
                raise ToolError(f"the command was not run, because it could not be sandboxed: {error}") from None
        try:
            return await supervisor.start(words, cwd=cwd, env=without_secrets(), inherit=())
        except StartError as error:
            raise ToolError(f"the command could not be started: {error.reason}") from None


async def show_last(content: Sequence[v1.ToolCallContent], progress: ShowProgress) -> None:
    """Show the output of a cancelled command."""
    # A client that is slow or gone keeps the output that it has received before.
    with suppress(TimeoutError, ConnectionClosedError, LogError):
        async with asyncio.timeout(CLEANUP_TIMEOUT_S):
            await progress(content)


async def _stop(child: Child, sandbox: "Sandbox | None") -> tuple[ProcessExit, Sequence[tuple[str, str]]]:
    ended = await child.stop(grace_s=0, term_s=TERM_GRACE_S)
    return ended, () if sandbox is None else await asyncio.to_thread(sandbox.rename_new_files)


async def _show(
    exited: asyncio.Future[ProcessExit], terminal: _OwnTerminal, output: BoundedOutput, progress: ShowProgress
) -> None:
    if begin := terminal.begin():
        await progress(begin)
    pause_s, shown = FIRST_LIVE_S, 0
    ends = (exited, terminal.cancelled)
    while not (await asyncio.wait(ends, timeout=pause_s, return_when=asyncio.FIRST_COMPLETED))[0]:
        if output.total_bytes != shown:
            shown = output.total_bytes
            await progress(terminal.show(output.live))
            pause_s = min(2 * pause_s, LAST_LIVE_S)


def _end(
    terminal: _OwnTerminal,
    output: BoundedOutput,
    ended: ProcessExit,
    *,
    timed_out: bool,
    renamed: Sequence[tuple[str, str]],
) -> CommandResult:
    text = output.text
    return CommandResult(
        text,
        terminal.end(text, ended),
        output.cut,
        ended.code,
        ended.signal_name,
        timed_out,
        cancelled=terminal.cancelled.done(),
        renamed=renamed,
    )
