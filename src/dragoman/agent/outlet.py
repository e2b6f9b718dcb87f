"""What a session sends: first into its log, then to its client, in the same order.

Updates of one tick of the loop are staged and go out together: one write to the log, then one to the client.
An update that could not be logged is not sent, so that whatever a client has seen is there after a load.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dragoman.errors import LogFailed
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.decode import encode
from dragoman.store import Log

STAGED_BYTES = 64 * 1024
"""Staged updates that are sent without waiting for the end of the tick: a pipe full."""


class Outlet:
    """The way of a session's updates; `log` is None until the session has one."""

    def __init__(self, connection: Connection, session_id: str) -> None:
        self.log: Log | None = None
        self._connection = connection
        self._session_id = session_id
        self._staged: list[bytes] = []
        self._staged_bytes = 0
        self._scheduled = False
        self._held = False
        self._released = asyncio.Event()
        self._failure: LogFailed | None = None

    async def send(self, update: v1.SessionUpdate, *, logged: bool = True) -> None:
        """Log and send an update; waits only while the client does not keep up. Raises LogFailed."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        data = encode(update)
        if logged and self.log is not None:
            self.log.append("update", data)
        self._staged.append(data)
        self._staged_bytes += len(data)
        if self._staged_bytes >= STAGED_BYTES:
            self.flush()
            await self._flow()
        elif not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._flush_at_end_of_tick)

    def record(self, kind: str, data: bytes) -> None:
        """Log something that the client is not sent. Raises LogFailed."""
        if self.log is not None:
            self.log.append(kind, data)

    def flush(self) -> None:
        """Send all that is staged. Raises LogFailed, and then nothing of it was sent."""
        if self.log is not None:
            try:
                self.log.flush()
            except LogFailed as failure:
                self._failure = failure
                self._staged.clear()
                self._staged_bytes = 0
                raise
        if self._staged and not self._held:
            staged, self._staged = self._staged, []
            self._staged_bytes = 0
            self._connection.write_updates(self._session_id, staged)

    async def replay(self, updates: Sequence[bytes]) -> None:
        """Send logged updates again, ahead of whatever is staged."""
        self._connection.write_updates(self._session_id, updates)
        await self._connection.flow()

    def hold(self) -> None:
        """Keep new updates back until `release`, while the old ones are replayed."""
        self.flush()
        self._held = True
        self._released.clear()

    def release(self) -> None:
        """Let go of what was kept back."""
        self._held = False
        self._released.set()
        self.flush()

    async def _flow(self) -> None:
        if self._held:
            await self._released.wait()
        await self._connection.flow()

    def _flush_at_end_of_tick(self) -> None:
        self._scheduled = False
        with suppress(LogFailed):  # kept in self._failure, which the next send raises
            self.flush()
