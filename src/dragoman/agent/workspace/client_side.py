"""The client's files, with their unsaved changes, and its terminals, as the tools of a session use them."""

import asyncio
import logging
from typing import Any, TypeVar

from dragoman.agent.turns.prepared_call import ShowProgress, ToolError, code
from dragoman.agent.workspace.shell import CLEANUP_TIMEOUT_S, HEAD_BYTES, TAIL_BYTES, CommandResult, show_last
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosedError, InvalidResultError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import (
    FS_READ_TEXT_FILE,
    FS_WRITE_TEXT_FILE,
    TERMINAL_CREATE,
    TERMINAL_KILL,
    TERMINAL_OUTPUT,
    TERMINAL_RELEASE,
    TERMINAL_WAIT_FOR_EXIT,
    Method,
)
from dragoman.text import drop_sequences

P = TypeVar("P")
R = TypeVar("R")

ANSWER_TIMEOUT_S = 60.0
"""How long a client may take. Editors answer in milliseconds, except when they format on save or the disk is slow."""

_log = logging.getLogger("dragoman.agent")


class ClientSide:
    """Sends the requests of one session to its client."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.session_id = session_id
        self._connection = connection

    async def call(self, method: Method[P, R], params: P, *, timeout_s: float = ANSWER_TIMEOUT_S) -> R:
        """Send a request and return its result. Raises RemoteError, and ToolError if no answer will arrive."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._connection.call(method, params)
        except TimeoutError:
            raise ToolError(f"the client did not answer {method.name} within {timeout_s:.0f} s") from None
        except (InvalidResultError, ConnectionClosedError) as error:
            raise ToolError(str(error)) from None

    async def try_call(self, method: Method[P, Any], params: P) -> None:
        """Send a request whose failure does not matter to us, and log the failure."""
        try:
            await self.call(method, params, timeout_s=CLEANUP_TIMEOUT_S)
        except (RemoteError, ToolError) as error:
            _log.debug("%s at the client failed: %s", method.name, error)


class ClientFiles:
    """Reads and writes the client's files, by absolute paths that are inside the boundary."""

    def __init__(self, client: ClientSide, capabilities: v1.FileSystemCapabilities | None) -> None:
        self.can_read = capabilities is not None and bool(capabilities.read_text_file)
        self.can_write = capabilities is not None and bool(capabilities.write_text_file)
        self._client = client

    async def read(self, path: str) -> str:
        """Return the text of a file. Raises ToolError."""
        request = v1.ReadTextFileRequest(session_id=self._client.session_id, path=path)
        try:
            return (await self._client.call(FS_READ_TEXT_FILE, request)).content
        except RemoteError as error:
            raise ToolError(f"the client could not read {path}: {error.text}") from None

    async def write(self, path: str, text: str) -> None:
        """Write a file. Raises ToolError."""
        request = v1.WriteTextFileRequest(session_id=self._client.session_id, path=path, content=text)
        try:
            await self._client.call(FS_WRITE_TEXT_FILE, request)
        except RemoteError as error:
            raise ToolError(f"the client refused to write {path}: {error.text}") from None


OUTPUT_BYTES = HEAD_BYTES + TAIL_BYTES
"""The same limit as for our own commands. A client keeps the end of the output."""


class ClientTerminals:
    """Runs commands in terminals of the client. Each one is released, and killed before that if it still runs."""

    def __init__(self, client: ClientSide) -> None:
        self._client = client

    async def run(self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float) -> CommandResult:
        """Run a shell command to its end. Raises ToolError if the client cannot."""
        try:
            terminal = _Terminal(self._client, await self._create(command, cwd))
            try:
                return await terminal.follow(progress, timeout_s)
            except asyncio.CancelledError:
                await finish(terminal.show_last(progress))
                raise
            finally:
                await finish(terminal.discard())
        except RemoteError as error:
            raise ToolError(f"the client could not run it in its terminal: {error.text}") from None

    async def _create(self, command: str, cwd: str) -> str:
        request = v1.CreateTerminalRequest(
            session_id=self._client.session_id,
            command="/bin/sh",
            args=["-c", command],
            cwd=cwd,
            output_byte_limit=OUTPUT_BYTES,
        )
        creating = asyncio.create_task(self._client.call(TERMINAL_CREATE, request, timeout_s=ANSWER_TIMEOUT_S))
        try:
            return (await asyncio.shield(creating)).terminal_id
        except asyncio.CancelledError:
            await finish(self._abandon(creating))
            raise

    async def _abandon(self, creating: asyncio.Task[v1.CreateTerminalResponse]) -> None:
        """Cancel the creation of a terminal. The client may have started the command before it receives the cancel."""
        await asyncio.wait([creating], timeout=CLEANUP_TIMEOUT_S)
        creating.cancel()
        await asyncio.wait([creating])
        if not creating.cancelled() and creating.exception() is None:
            await _Terminal(self._client, creating.result().terminal_id).discard()


class _Terminal:
    def __init__(self, client: ClientSide, terminal_id: str) -> None:
        self._client = client
        self._id = terminal_id
        self._ended = False

    async def follow(self, progress: ShowProgress, timeout_s: float) -> CommandResult:
        await progress([v1.Terminal(terminal_id=self._id)])
        ended = await self._wait(timeout_s)
        if ended is None:
            await self._kill()
        text, truncated = await self._read(ANSWER_TIMEOUT_S)
        # Replace the terminal, because its ID is invalid after a load, and some clients reject content next to it.
        content = [code(text)] if text else []
        if ended is None:
            return CommandResult(text, content, truncated, timed_out=True)
        return CommandResult(text, content, truncated, ended.exit_code, ended.signal)

    async def show_last(self, progress: ShowProgress) -> None:
        """End a cancelled command and show its output in place of the terminal."""
        await self._end()
        try:
            text, _ = await self._read(CLEANUP_TIMEOUT_S)
        except (RemoteError, ToolError):
            text = ""
        await show_last([code(text)] if text else [], progress)

    async def discard(self) -> None:
        await self._end()
        await self._client.try_call(
            TERMINAL_RELEASE, v1.ReleaseTerminalRequest(session_id=self._client.session_id, terminal_id=self._id)
        )

    async def _wait(self, timeout_s: float) -> v1.WaitForTerminalExitResponse | None:
        request = v1.WaitForTerminalExitRequest(session_id=self._client.session_id, terminal_id=self._id)
        try:
            async with asyncio.timeout(timeout_s):
                ended = await self._client.call(TERMINAL_WAIT_FOR_EXIT, request, timeout_s=2 * timeout_s)
        except TimeoutError:
            return None
        self._ended = True
        return ended

    async def _read(self, timeout_s: float) -> tuple[str, bool]:
        """Return the output, and whether the client has cut it."""
        request = v1.TerminalOutputRequest(session_id=self._client.session_id, terminal_id=self._id)
        written = await self._client.call(TERMINAL_OUTPUT, request, timeout_s=timeout_s)
        plain = _plain(written.output)
        return f"[… the beginning was cut …]\n{plain}" if written.truncated else plain, written.truncated

    async def _end(self) -> None:
        if not self._ended:
            await self._kill()

    async def _kill(self) -> None:
        await self._client.try_call(
            TERMINAL_KILL, v1.KillTerminalRequest(session_id=self._client.session_id, terminal_id=self._id)
        )
        self._ended = True


def _plain(output: str) -> str:
    return drop_sequences(output)
