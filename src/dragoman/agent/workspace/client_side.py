"""The client of a session as the tools use it: its files, with changes that are not saved yet, and its terminals."""

import asyncio
import logging
from typing import Any, TypeVar

from dragoman.agent.prepared_call import ShowProgress, ToolFailure, code
from dragoman.agent.workspace.shell import CLEANUP_TIMEOUT_S, HEAD_BYTES, TAIL_BYTES, CommandEnd, show_last
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
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
"""An editor answers in milliseconds, unless it is busy formatting on save, or its disk is far away."""

_log = logging.getLogger("dragoman.agent")


class ClientSide:
    """The other end of a session."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.session_id = session_id
        self._connection = connection

    async def ask(self, method: Method[P, R], params: P, *, timeout_s: float = ANSWER_TIMEOUT_S) -> R:
        """Send a request and wait for its answer; raises RemoteError, and ToolFailure when there will be no answer."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._connection.call(method, params)
        except TimeoutError:
            raise ToolFailure(f"the client did not answer {method.name} within {timeout_s:.0f} s") from None
        except (InvalidResult, ConnectionClosed) as error:
            raise ToolFailure(str(error)) from None

    async def tell(self, method: Method[P, Any], params: P) -> None:
        """Ask for something that changes nothing for us when it fails."""
        try:
            await self.ask(method, params, timeout_s=CLEANUP_TIMEOUT_S)
        except (RemoteError, ToolFailure) as error:
            _log.debug("%s at the client failed: %s", method.name, error)


class ClientFiles:
    """Asks the client for its files, by absolute paths that are known to lie inside the boundary."""

    def __init__(self, client: ClientSide, capabilities: v1.FileSystemCapabilities | None) -> None:
        self.can_read = capabilities is not None and bool(capabilities.read_text_file)
        self.can_write = capabilities is not None and bool(capabilities.write_text_file)
        self._client = client

    async def read(self, path: str) -> str:
        """Return the text of a file; raises ToolFailure."""
        request = v1.ReadTextFileRequest(session_id=self._client.session_id, path=path)
        try:
            return (await self._client.ask(FS_READ_TEXT_FILE, request)).content
        except RemoteError as error:
            raise ToolFailure(f"the client could not read {path}: {error.words}") from None

    async def write(self, path: str, text: str) -> None:
        """Give a file this text; raises ToolFailure."""
        request = v1.WriteTextFileRequest(session_id=self._client.session_id, path=path, content=text)
        try:
            await self._client.ask(FS_WRITE_TEXT_FILE, request)
        except RemoteError as error:
            raise ToolFailure(f"the client refused to write {path}: {error.words}") from None


OUTPUT_BYTES = HEAD_BYTES + TAIL_BYTES
"""As much as we keep of a command of our own; a client keeps the end of it."""


class ClientTerminals:
    """Runs commands in terminals of the client; each is released, and killed first unless it had ended."""

    def __init__(self, client: ClientSide) -> None:
        self._client = client

    async def run(self, command: str, cwd: str, progress: ShowProgress, *, timeout_s: float) -> CommandEnd:
        """Run a text of the shell to its end; raises ToolFailure when the client cannot."""
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
            raise ToolFailure(f"the client could not run it in its terminal: {error.words}") from None

    def cancel(self, terminal_id: str) -> bool:
        """Cancel nothing: these terminals are the client's, which can end them itself."""
        del terminal_id
        return False

    async def _create(self, command: str, cwd: str) -> str:
        request = v1.CreateTerminalRequest(
            session_id=self._client.session_id,
            command="/bin/sh",
            args=["-c", command],
            cwd=cwd,
            output_byte_limit=OUTPUT_BYTES,
        )
        asking = asyncio.create_task(self._client.ask(TERMINAL_CREATE, request, timeout_s=ANSWER_TIMEOUT_S))
        try:
            return (await asyncio.shield(asking)).terminal_id
        except asyncio.CancelledError:
            await finish(self._abandon(asking))
            raise

    async def _abandon(self, asking: asyncio.Task[v1.CreateTerminalResponse]) -> None:
        """Cancel the request for a terminal: the client may have started the command before it hears of that."""
        await asyncio.wait([asking], timeout=CLEANUP_TIMEOUT_S)
        asking.cancel()
        await asyncio.wait([asking])
        if not asking.cancelled() and asking.exception() is None:
            await _Terminal(self._client, asking.result().terminal_id).discard()


class _Terminal:
    def __init__(self, client: ClientSide, terminal_id: str) -> None:
        self._client = client
        self._id = terminal_id
        self._ended = False

    async def follow(self, progress: ShowProgress, timeout_s: float) -> CommandEnd:
        await progress([v1.Terminal(terminal_id=self._id)])
        ended = await self._wait(timeout_s)
        if ended is None:
            await self._kill()
        text, truncated = await self._read(ANSWER_TIMEOUT_S)
        # In place of the terminal: its id means nothing after a load, and some clients refuse content with it.
        content = [code(text)] if text else []
        if ended is None:
            return CommandEnd(text, content, truncated, timed_out=True)
        return CommandEnd(text, content, truncated, ended.exit_code, ended.signal)

    async def show_last(self, progress: ShowProgress) -> None:
        """End a command that was cancelled, and show its output in place of the terminal."""
        await self._end()
        try:
            text, _ = await self._read(CLEANUP_TIMEOUT_S)
        except (RemoteError, ToolFailure):
            text = ""
        await show_last([code(text)] if text else [], progress)

    async def discard(self) -> None:
        await self._end()
        await self._client.tell(
            TERMINAL_RELEASE, v1.ReleaseTerminalRequest(session_id=self._client.session_id, terminal_id=self._id)
        )

    async def _wait(self, timeout_s: float) -> v1.WaitForTerminalExitResponse | None:
        request = v1.WaitForTerminalExitRequest(session_id=self._client.session_id, terminal_id=self._id)
        try:
            async with asyncio.timeout(timeout_s):
                ended = await self._client.ask(TERMINAL_WAIT_FOR_EXIT, request, timeout_s=2 * timeout_s)
        except TimeoutError:
            return None
        self._ended = True
        return ended

    async def _read(self, timeout_s: float) -> tuple[str, bool]:
        """Return the output, and whether the client has cut it."""
        request = v1.TerminalOutputRequest(session_id=self._client.session_id, terminal_id=self._id)
        written = await self._client.ask(TERMINAL_OUTPUT, request, timeout_s=timeout_s)
        plain = _plain(written.output)
        return f"[… the beginning is left out …]\n{plain}" if written.truncated else plain, written.truncated

    async def _end(self) -> None:
        if not self._ended:
            await self._kill()

    async def _kill(self) -> None:
        await self._client.tell(
            TERMINAL_KILL, v1.KillTerminalRequest(session_id=self._client.session_id, terminal_id=self._id)
        )
        self._ended = True


def _plain(output: str) -> str:
    return drop_sequences(output)
