"""An editor on stdio, attached to a bridge. The connection to the bridge is opened again whenever it breaks."""

import asyncio
import random
from collections.abc import Callable, Sequence

from dragoman.attach.relay import Relay, RelayLimits, RelayState
from dragoman.backoff import Backoff
from dragoman.protocol.address import Address, AddressError
from dragoman.wire import Oversized
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

BACKOFF_MIN_S = 0.25
BACKOFF_MAX_S = 10.0
"""Pause between two attempts. A user who waits for the bridge to return waits no longer than this."""

FIRST_WAIT_S = 10.0
"""Time for the first connection. A bridge that starts with the editor is ready by then, and a typo is reported soon."""

GREETING_WAIT_S = 2.0
"""Time to wait for the editor's `initialize`, so that the error can be its answer. Not all editors show stderr."""

_CLIENT_ERRORS = range(400, 500)
_TEMPORARY = frozenset({408, 425, 429})
"""Client errors that may pass. They do not mean a wrong URL or token."""

_FORBIDDEN = frozenset({401, 403})


class Attachment:
    """Runs a relay between an editor and the bridge at an address."""

    # `_keep_connected` is the main loop, in a task. The editor's callbacks only feed the relay and set events.

    def __init__(
        self,
        editor: Transport,
        find_address: Callable[[], Address],
        report: Callable[[str], None],
        limits: RelayLimits | None = None,
    ) -> None:
        self._editor = editor
        self._find_address = find_address
        """Called before each connection, because the token may have changed."""
        self._report = report
        self._relay = Relay(editor, find_address().shown, limits or RelayLimits(), report)
        self._connection: _BridgeConnection | None = None
        self._ended = asyncio.Event()
        self._greeted = asyncio.Event()

    async def run(self) -> None:
        """Pass messages until the editor closes its side. Raises AddressError after every request was answered."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._editor.start(self, tasks)
            connecting = tasks.create_task(self._keep_connected())
            await self._ended.wait()
            self._relay.end()
            if self._connection is None:
                connecting.cancel()
            else:
                self._connection.drop("the editor closed the connection")
                await asyncio.wait([connecting])
            await self._editor.close()
        if not connecting.cancelled() and (failure := connecting.result()) is not None:
            raise failure

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Pass lines from the editor to the relay."""
        for line in lines:
            self._relay.from_editor(line)
        if self._relay.greeting.message is not None:
            self._greeted.set()
        if self._connection is not None:
            self._hold(self._editor, self._connection.transport)

    def input_ended(self, *, was_file: bool) -> None:
        """Stop, because the editor closed its side."""
        del was_file
        self._ended.set()

    async def _keep_connected(self) -> AddressError | None:
        """Connect again and again until the editor has left. Return the failure that makes further attempts useless."""
        loop = asyncio.get_running_loop()
        first_until = loop.time() + FIRST_WAIT_S
        backoff = Backoff(BACKOFF_MIN_S, BACKOFF_MAX_S)
        while not self._ended.is_set():
            try:
                transport = await self._open()
            except AddressError as failure:
                self._relay.record_failure(failure.problem)
                if self._is_final(failure, is_late=loop.time() >= first_until):
                    return await self._fail(failure)
            else:
                if await self._serve(transport):
                    backoff.reset()
            await self._pause(backoff.next_s())
        return None

    async def _open(self) -> Transport:
        from dragoman.protocol.websocket import open_websocket

        return await open_websocket(self._find_address())

    async def _serve(self, transport: Transport) -> bool:
        """Pass messages until the connection ends. Return whether the bridge accepted it."""
        was_known = self._relay.greeting.version is not None
        self._connection = _BridgeConnection(transport, self._relay, lambda: self._hold(transport, self._editor))
        async with asyncio.TaskGroup() as tasks:
            transport.start(self._connection, tasks)
            self._relay.connected(self._connection)
            if was_known:
                self._report("connected again")
            reason = await self._connection.end()
        was_open = self._relay.state is RelayState.OPEN
        self._connection = None
        self._relay.lost(reason)
        if not self._ended.is_set():
            self._report(f"the connection to the bridge is lost: {reason}; trying again")
        return was_open

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s * random.uniform(0.5, 1)):  # noqa: S311 -- editors must not come at once
                await self._ended.wait()
        except TimeoutError:
            return

    def _is_final(self, failure: AddressError, *, is_late: bool) -> bool:
        """Return whether further attempts are useless.

        After a first success only a rejected token is final, because the bridge may be restarting.
        """
        if self._relay.greeting.version is not None:
            return failure.status in _FORBIDDEN
        return is_late or (failure.status in _CLIENT_ERRORS and failure.status not in _TEMPORARY)

    async def _fail(self, failure: AddressError) -> AddressError:
        """Wait briefly for the editor's `initialize`, then answer all requests with this failure."""
        try:
            async with asyncio.timeout(GREETING_WAIT_S):
                await self._greeted.wait()
        except TimeoutError:
            pass  # the failure is on stderr only
        self._relay.end(str(failure))
        self._ended.set()
        return failure

    def _hold(self, source: Transport, sink: Transport) -> None:
        """Pause reading while the other side has too many unsent bytes."""
        if sink.unsent_bytes > HIGH_WATER_BYTES:
            source.pause_reading()
            self._tasks.create_task(_resume_when_drained(source, sink))


async def _resume_when_drained(source: Transport, sink: Transport) -> None:
    await sink.drained()
    source.resume_reading()


class _BridgeConnection:
    """One connection to the bridge."""

    def __init__(self, transport: Transport, relay: Relay, balance: Callable[[], None]) -> None:
        self.transport = transport
        self._relay = relay
        self._balance = balance
        self._reason: str | None = None
        self._has_ended = asyncio.Event()

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Pass lines from the bridge to the relay. The WebSocket library bounds their length."""
        for line in lines:
            if isinstance(line, bytes) and not self._has_ended.is_set():
                self._relay.from_bridge(line)
        self._balance()

    def input_ended(self, *, was_file: bool) -> None:
        """Note that the connection has ended."""
        del was_file
        self._has_ended.set()

    def write(self, line: bytes) -> None:
        """Send a line."""
        self.transport.write(line)

    def drop(self, reason: str) -> None:
        """Close the connection for this reason."""
        self._reason = self._reason or reason
        self._has_ended.set()

    async def end(self) -> str:
        """Wait for the end of the connection and return its reason."""
        await self._has_ended.wait()
        reason = self._reason or str(await self.transport.explain_end())
        await self.transport.close()
        return reason
