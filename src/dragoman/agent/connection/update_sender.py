"""Writes the updates of a session to its log and sends them to its client, in the same order.

Updates of one tick of the event loop are staged and written together: one write to the log, then one to the client.
An update that cannot be logged is not sent, so a load returns every update that a client has received. Writing to a
log in a database takes time, so the client receives its lines in order once they are committed.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeVar

from dragoman.errors import ConnectionClosedError, LogError, MessageTooLongError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.decode import ENCODER
from dragoman.protocol.methods import Method
from dragoman.protocol.update_lines import update_lines
from dragoman.store import History
from dragoman.wire import MAX_LINE_BYTES
from dragoman.wire.message import encode_with_surrogates

P = TypeVar("P")
R = TypeVar("R")

STAGED_BYTES = 64 * 1024
"""Staged bytes that are sent without waiting for the end of the tick: the size of a pipe's buffer."""

MAX_UPDATE_BYTES = MAX_LINE_BYTES - 4096
"""The longest update: the longest message minus its envelope."""


def _encode(update: v1.SessionUpdate) -> bytes:
    try:
        return ENCODER.encode(update)
    except UnicodeEncodeError:  # a program may cut a text in the middle of an emoji
        return encode_with_surrogates(update, ENCODER)


class _PendingLines:
    """Lines that wait, in order, for their log writes before the client receives them.

    A write is done shortly before its callbacks run. Every sender therefore sends the ready lines first.
    """

    def __init__(self) -> None:
        self.size = 0
        self._waiting: list[tuple[bytes, asyncio.Future[None] | None]] = []

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def add(self, lines: bytes, written: "asyncio.Future[None] | None") -> None:
        """Add lines. Lines without a write only wait for the lines before them."""
        self._waiting.append((lines, written))
        self.size += len(lines)

    def pop_written(self) -> tuple[bytes, LogError | None]:
        """Remove and return the leading lines whose writes are done. After a failed write, drop all later lines."""
        ready: list[bytes] = []
        for lines, written in self._waiting:
            if written is not None:
                if not written.done():
                    break
                if isinstance(failure := written.exception(), LogError):
                    self._waiting.clear()
                    self.size = 0
                    return b"".join(ready), failure
            self.size -= len(lines)
            ready.append(lines)
        del self._waiting[: len(ready)]
        return b"".join(ready), None

    async def logged(self) -> None:
        """Wait until all lines are logged. Raises LogError."""
        last = next((written for _, written in reversed(self._waiting) if written is not None), None)
        if last is not None:
            await asyncio.shield(last)


class UpdateSender:
    """Logs and sends a session's updates. `use_log` sets the log."""

    def __init__(
        self,
        connection: Connection,
        session_id: str,
        fallback: Callable[[memoryview], bytes | memoryview] | None = None,
    ) -> None:
        """Create a sender. `fallback` changes the lines of a replay for a client that lacks a capability."""
        self._fallback = fallback
        self._log: History | None = None
        self.connection = connection
        self._session_id = session_id
        self._staged: list[bytes] = []
        """Updates that are not logged yet."""
        self._staged_bytes = 0
        self._lines: list[bytes] = []
        """Lines that were not sent yet. They are logged, or are never logged."""
        self._pending = _PendingLines()
        self._scheduled = False
        self._released: asyncio.Event | None = None
        """Set when held updates are released. None while none are held."""
        self._failure: LogError | None = None

    @property
    def log(self) -> History:
        """The log that updates are written to."""
        if self._log is None:
            raise RuntimeError(f"session {self._session_id} has no log yet")
        return self._log

    def use_log(self, log: History) -> None:
        """Write to this log from now on, even if the previous log has failed."""
        self._log = log
        self._failure = None

    async def send(self, update: v1.SessionUpdate) -> None:
        """Log and send an update. Wait only while the client does not keep up. Raises LogError."""
        if self.put(update):
            await self.flow()

    def put(self, update: v1.SessionUpdate) -> bool:
        """Log and send an update. Return whether to await `flow` before the next one.

        Raises LogError, and MessageTooLongError for an update that would break every replay.
        """
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        data = _encode(update)
        if len(data) > MAX_UPDATE_BYTES:
            raise MessageTooLongError(len(data), MAX_UPDATE_BYTES)
        self._staged.append(data)
        self._staged_bytes += len(data)
        self._schedule()
        return self._staged_bytes >= STAGED_BYTES

    def send_unlogged(self, update: v1.SessionUpdate) -> None:
        """Send an update without logging it. This works after the log has failed, so that a notice can report it."""
        lines = update_lines(self._session_id, [_encode(update)])
        if self.log.failure is not None:
            with suppress(ConnectionClosedError):  # the next sender receives the error
                self.connection.write_lines(lines)
            return
        self._log_staged()
        self._lines.append(lines)
        self._schedule()

    async def send_for_subagent(self, session_id: str, update: v1.SessionUpdate) -> None:
        """Send an update of a subagent's session after all earlier updates, without logging it."""
        await self.settle()
        await self.flow()
        self.connection.write_lines(update_lines(session_id, [_encode(update)]))

    async def flow(self) -> None:
        """Send all staged updates, and wait while the client does not keep up. Raises LogError."""
        self.flush()
        if self._pending.size >= STAGED_BYTES:
            await self._pending.logged()
        if self._released is not None:
            await self._released.wait()
        await self.connection.flow()

    async def settle(self) -> None:
        """Wait until all staged updates were sent. Raises LogError."""
        self.flush()
        await self._pending.logged()
        self._send_logged()

    async def call(self, method: Method[P, R], params: P) -> R:
        """Send a request to the client after all earlier updates. Raises as `Connection.call` does, and LogError."""
        await self.settle()
        if self._released is not None:  # a permission request must not overtake its tool call
            await self._released.wait()
        return await self.connection.call(method, params)

    def record(self, kind: str, data: bytes) -> None:
        """Log a record that is not sent to the client. Raises LogError."""
        self._log_staged()
        self.log.record(kind, data)

    def record_update(self, update: v1.SessionUpdate) -> None:
        """Log an update that the client receives only in a replay. Raises LogError."""
        self._log_staged()
        self.log.append(update_lines(self._session_id, [_encode(update)]))

    def flush(self) -> None:
        """Send all staged updates. Raises LogError, and then none of them was sent."""
        try:
            self._log_staged()
            written = self.log.flush()
        except LogError as failure:
            self._fail(failure)
            raise
        self._send_logged()
        if self._lines and self._released is None:
            lines, self._lines = b"".join(self._lines), []
            self._staged_bytes = 0
            if written is None and not self._pending:
                self.connection.write_lines(lines)
                return
            self._pending.add(lines, written)
            if written is not None:
                written.add_done_callback(lambda _: self._send_logged())

    async def replay(self, runs: Sequence[memoryview]) -> None:
        """Send logged lines again, before the staged ones. Large runs are not copied."""
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
        """Hold new updates back until `release`, while logged ones are replayed."""
        self.flush()
        self._released = self._released or asyncio.Event()

    def release(self) -> None:
        """Send the updates that were held back."""
        if self._released is not None:
            self._released.set()
            self._released = None
        self.flush()

    def _send_logged(self) -> None:
        """Send the lines whose log writes are done. Lines whose writes failed are not sent."""
        lines, failure = self._pending.pop_written()
        if lines:
            with suppress(ConnectionClosedError):  # the next sender receives the error
                self.connection.write_lines(lines)
        if failure is not None:
            self._fail(failure)

    def _fail(self, failure: LogError) -> None:
        self._failure = failure
        self._staged.clear()
        self._lines.clear()
        self._staged_bytes = 0

    def _log_staged(self) -> None:
        """Convert the staged updates to lines, so that the same bytes are logged and sent."""
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
        with suppress(LogError, ConnectionClosedError):  # the next sender receives the error
            self.flush()
