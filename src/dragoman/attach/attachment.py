"""An editor on stdio, attached to a bridge: the connection is opened, kept, and opened again when it breaks."""

import asyncio
import random
from collections.abc import Callable, Sequence

from dragoman.attach.relay import Relay, RelayLimits, RelayState
from dragoman.protocol.address import Address, AddressFailed
from dragoman.wire import MAX_LINE_BYTES, Oversized
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

BACKOFF_MIN_S = 0.25
BACKOFF_MAX_S = 10.0
"""Between two attempts: a person who waits for the bridge to be back does not wait longer than this."""

FIRST_WAIT_S = 10.0
"""For the first connection: a bridge that starts beside the editor is there by then; a wrong address is told soon."""

GREETING_WAIT_S = 2.0
"""For the editor's `initialize`, so that a refusal can be its answer: editors show that, and not all show stderr."""

MAX_BRIDGE_BYTES = MAX_LINE_BYTES + 1024 * 1024
"""The longest message of an agent, and what a bridge may add."""

_WRONG = range(400, 500)
_PASSING = frozenset({408, 425, 429})
"""Refusals that are about this moment, and not about the address or the token."""

_UNWELCOME = frozenset({401, 403})


class Attachment:
    """Runs a relay between an editor and the bridge at an address."""

    def __init__(
        self,
        editor: Transport,
        find_address: Callable[[], Address],
        tell: Callable[[str], None],
        limits: RelayLimits | None = None,
    ) -> None:
        self._editor = editor
        self._find_address = find_address
        """Called for each connection: the token may be another one by then."""
        self._tell = tell
        self._relay = Relay(editor, find_address().shown, limits or RelayLimits(), tell)
        self._connection: _BridgeConnection | None = None
        self._ended = asyncio.Event()
        self._greeted = asyncio.Event()

    async def run(self) -> None:
        """Pass messages until the editor closes its side; raises AddressFailed, and everything is answered by then."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._editor.start(self, tasks)
            connecting = tasks.create_task(self._keep_connected())
            await self._ended.wait()
            self._relay.end()
            if self._connection is None:
                connecting.cancel()
            else:
                self._connection.drop("the editor has closed its side")
                await asyncio.wait([connecting])
            await self._editor.close()
        if not connecting.cancelled() and (failure := connecting.result()) is not None:
            raise failure

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take lines of the editor."""
        for line in lines:
            self._relay.from_editor(line)
        if self._relay.greeting.message is not None:
            self._greeted.set()
        if self._connection is not None:
            self._hold(self._editor, self._connection.transport)

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that the editor has closed its side."""
        del was_file
        self._ended.set()

    async def _keep_connected(self) -> AddressFailed | None:
        """Connect, and connect again, until the editor has gone; gives the failure that ends it otherwise."""
        loop = asyncio.get_running_loop()
        first_until = loop.time() + FIRST_WAIT_S
        backoff_s = BACKOFF_MIN_S
        while not self._ended.is_set():
            try:
                transport = await self._open()
            except AddressFailed as failure:
                self._relay.note_failure(failure.problem)
                if self._is_final(failure, is_late=loop.time() >= first_until):
                    return await self._give_up(failure)
            else:
                if await self._serve(transport):
                    backoff_s = BACKOFF_MIN_S
            await self._pause(backoff_s)
            backoff_s = min(2 * backoff_s, BACKOFF_MAX_S)
        return None

    async def _open(self) -> Transport:
        from dragoman.protocol.websocket import open_websocket

        return await open_websocket(self._find_address(), max_bytes=MAX_BRIDGE_BYTES)

    async def _serve(self, transport: Transport) -> bool:
        """Pass messages over a connection to its end; tells whether it was of any use."""
        was_known = self._relay.greeting.version is not None
        self._connection = _BridgeConnection(transport, self._relay, lambda: self._hold(transport, self._editor))
        async with asyncio.TaskGroup() as tasks:
            transport.start(self._connection, tasks)
            self._relay.connected(self._connection)
            if was_known:
                self._tell("connected again")
            reason = await self._connection.end()
        was_open = self._relay.state is RelayState.OPEN
        self._connection = None
        self._relay.lost(reason)
        if not self._ended.is_set():
            self._tell(f"the connection to the bridge is lost: {reason}; trying again")
        return was_open

    async def _pause(self, delay_s: float) -> None:
        try:
            async with asyncio.timeout(delay_s * random.uniform(0.5, 1)):  # noqa: S311 -- editors must not come at once
                await self._ended.wait()
        except TimeoutError:
            return

    def _is_final(self, failure: AddressFailed, *, is_late: bool) -> bool:
        """Tell whether trying again is of no use: later only if the bridge says so, because it may be restarted."""
        if self._relay.greeting.version is not None:
            return failure.status in _UNWELCOME
        return is_late or (failure.status in _WRONG and failure.status not in _PASSING)

    async def _give_up(self, failure: AddressFailed) -> AddressFailed:
        try:
            async with asyncio.timeout(GREETING_WAIT_S):
                await self._greeted.wait()
        except TimeoutError:
            pass  # stderr has it
        self._relay.end(str(failure))
        self._ended.set()
        return failure

    def _hold(self, source: Transport, sink: Transport) -> None:
        """Read no further while the other side does not take what was read."""
        if sink.unsent_bytes > HIGH_WATER_BYTES:
            source.pause_reading()
            self._tasks.create_task(_read_on(source, sink))


async def _read_on(source: Transport, sink: Transport) -> None:
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
        """Take lines of the bridge; the library that reads them bounds each."""
        for line in lines:
            if isinstance(line, bytes) and not self._has_ended.is_set():
                self._relay.from_bridge(line)
        self._balance()

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that the connection has broken."""
        del was_file
        self._has_ended.set()

    def write(self, line: bytes) -> None:
        """Send a line."""
        self.transport.write(line)

    def drop(self, reason: str) -> None:
        """End the connection, because it is of no use."""
        self._reason = self._reason or reason
        self._has_ended.set()

    async def end(self) -> str:
        """Wait for its end and give the reason."""
        await self._has_ended.wait()
        reason = self._reason or str(await self.transport.explain_end())
        await self.transport.close()
        return reason
