"""The updates of a session: first into its log, then to its client, in the same order.

Updates of one tick of the loop are staged and go out together: one write to the log, then one to the client.
An update that could not be logged is not sent, so that every update that a client has seen is there after a load. A log
in a database takes its time to write: the client is sent the lines when they are committed, in their order.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from dragoman.errors import ConnectionClosed, LogFailed
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.decode import ENCODER
from dragoman.protocol.methods import Method
from dragoman.protocol.update_lines import update_lines
from dragoman.store import Log
from dragoman.wire.message import encode_with_surrogates

P = TypeVar("P")
R = TypeVar("R")

STAGED_BYTES = 64 * 1024
"""Staged updates that are sent without waiting for the end of the tick: a pipe full."""


def _encode(update: v1.SessionUpdate) -> bytes:
    try:
        return ENCODER.encode(update)
    except UnicodeEncodeError:  # a program may cut a text in the middle of an emoji
        return encode_with_surrogates(update, ENCODER)


class _LateLines:
    """Lines that wait for a log that takes its time, each for a write of its own."""

    def __init__(self) -> None:
        self.size = 0
        self._last: asyncio.Future[None] | None = None
        """The write of the last of them."""

    def add(self, written: "asyncio.Future[None]", size: int) -> None:
        self.size += size
        self._last = written

    def remove(self, written: "asyncio.Future[None]", size: int) -> None:
        self.size -= size
        if self._last is written:
            self._last = None

    async def logged(self) -> None:
        """Wait until the log has all of them. Raises LogFailed."""
        if self._last is not None:
            await asyncio.shield(self._last)


class UpdateSender:
    """Logs and sends a session's updates; `use` gives it the log."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        fallback: Callable[[memoryview], bytes | memoryview] | None = None,
    ) -> None:
        """`fallback` changes the lines of a replay for a client that lacks a capability."""
        self._fallback = fallback
        self._log: Log | None = None
        self.connection = connection
        self._session_id = session_id
        self._staged: list[bytes] = []
        """Updates that are not logged yet."""
        self._staged_bytes = 0
        self._lines: list[bytes] = []
        """Lines that are logged, or are not to be, and that the client was not sent yet."""
        self._late = _LateLines()
        self._scheduled = False
        self._held = False
        self._released = asyncio.Event()
        self._failure: LogFailed | None = None

    @property
    def log(self) -> Log:
        """Where updates go first."""
        if self._log is None:
            raise RuntimeError(f"session {self._session_id} has no log yet")
        return self._log

    def use(self, log: Log) -> None:
        """Log into this from now on, also when the log before has failed."""
        self._log = log
        self._failure = None

    async def send(self, update: v1.SessionUpdate) -> None:
        """Log and send an update; waits only while the client does not keep up. Raises LogFailed."""
        if self.put(update):
            await self.flow()

    def put(self, update: v1.SessionUpdate) -> bool:
        """Log and send an update, and say whether to wait for `flow` before the next one. Raises LogFailed."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        data = _encode(update)
        self._staged.append(data)
        self._staged_bytes += len(data)
        self._schedule()
        return self._staged_bytes >= STAGED_BYTES

    def send_unlogged(self, update: v1.SessionUpdate) -> None:
        """Send an update that is not logged, also when the log has failed: a notice may be about that very failure."""
        lines = update_lines(self._session_id, [_encode(update)])
        if self.log.failure is not None:
            with suppress(ConnectionClosed):  # the next to send meets it
                self.connection.write_lines(lines)
            return
        self._log_staged()
        self._lines.append(lines)
        self._schedule()

    async def send_beside(self, session_id: str, update: v1.SessionUpdate) -> None:
        """Send an update of another session, a subagent's, after all that was sent before; it is not logged."""
        await self.flow()
        self.connection.write_lines(update_lines(session_id, [_encode(update)]))

    async def flow(self) -> None:
        """Send all that is staged, and wait while the client does not keep up. Raises LogFailed."""
        self.flush()
        if self._late.size >= STAGED_BYTES:
            await self._late.logged()
        if self._held:
            await self._released.wait()
        await self.connection.flow()

    async def settle(self) -> None:
        """Wait until all that is staged was sent. Raises LogFailed."""
        self.flush()
        await self._late.logged()

    async def call(self, method: Method[P, R], params: P) -> R:
        """Ask the client something, after all that was sent before. Raises as `Connection.call` does, and LogFailed."""
        await self.settle()
        if self._held:  # a question about a tool call must not overtake the call
            await self._released.wait()
        return await self.connection.call(method, params)

    def record(self, kind: str, data: bytes) -> None:
        """Log something that the client is not sent. Raises LogFailed."""
        self._log_staged()
        self.log.record(kind, data)

    def record_update(self, update: v1.SessionUpdate) -> None:
        """Log an update that the client is not sent before a replay. Raises LogFailed."""
        self._log_staged()
        self.log.append(update_lines(self._session_id, [_encode(update)]))

    def flush(self) -> None:
        """Send all that is staged. Raises LogFailed, and then nothing of it was sent."""
        try:
            self._log_staged()
            written = self.log.flush()
        except LogFailed as failure:
            self._fail(failure)
            raise
        if self._lines and not self._held:
            lines, self._lines = b"".join(self._lines), []
            self._staged_bytes = 0
            if written is None:
                self.connection.write_lines(lines)
            else:
                self._late.add(written, len(lines))
                written.add_done_callback(lambda done: self._send_logged(done, lines))

    async def replay(self, runs: Sequence[memoryview]) -> None:
        """Send logged lines again, before the staged ones; large runs are not copied."""
        small: list[memoryview | bytes] = []
        for run in runs if self._fallback is None else map(self._fallback, runs):
            if len(run) < STAGED_BYTES:
                small.append(run)
                continue
            if small:
                self.connection.write_lines(b"".join(small))
                small.clear()
            self.connection.write_lines(run)
        if small:
            self.connection.write_lines(b"".join(small))
        await self.connection.flow()

    def hold(self) -> None:
        """Keep new updates back until `release`, while the old ones are replayed."""
        self.flush()
        self._held = True
        self._released.clear()

    def release(self) -> None:
        """Send the updates that were kept back."""
        self._held = False
        self._released.set()
        self.flush()

    def _send_logged(self, written: "asyncio.Future[None]", lines: bytes) -> None:
        """Send lines when the log has them; lines that it could not take are not sent."""
        self._late.remove(written, len(lines))
        failure = written.exception()
        if isinstance(failure, LogFailed):
            self._fail(failure)
        else:
            with suppress(ConnectionClosed):  # the next to send meets it
                self.connection.write_lines(lines)

    def _fail(self, failure: LogFailed) -> None:
        self._failure = failure
        self._staged.clear()
        self._lines.clear()
        self._staged_bytes = 0

    def _log_staged(self) -> None:
        """Make lines of the staged updates: the same bytes are logged and sent."""
        if self._staged:
            lines = update_lines(self._session_id, self._staged)
            self.log.append(lines, len(self._staged))
            self._lines.append(lines)
            self._staged = []

    def _schedule(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_at_end_of_tick)

    def _flush_at_end_of_tick(self) -> None:
        self._scheduled = False
        with suppress(LogFailed, ConnectionClosed):  # the next to send meets it
            self.flush()
