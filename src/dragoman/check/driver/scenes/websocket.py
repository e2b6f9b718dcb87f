"""The scene about WebSockets: the upgrade and frames."""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from dragoman.check.conversation import ConversationEntry, RecordedConversation
from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.connection import LATE_S
from dragoman.check.driver.http_connection import INITIALIZE_ID, encode
from dragoman.check.driver.http_probe import is_answer
from dragoman.check.driver.stage import Stage
from dragoman.check.judge import Judge
from dragoman.check.judge.message import Object, decode_object
from dragoman.protocol.address import Address
from dragoman.protocol.streamable_http import CONNECTION_HEADER
from dragoman.protocol.websocket import NoWebSocketError, connect_websocket

UNKNOWN_METHOD = "_dragoman/check"
"""A method that no agent has. Every agent answers it with an error."""


class _ProbeSocket:
    """A WebSocket whose frames are entries of a conversation."""

    def __init__(self, socket: ClientConnection, judge: Judge, name: str) -> None:
        response = socket.response
        self.id = "" if response is None else response.headers.get(CONNECTION_HEADER, "")
        self.received: list[tuple[Object, ConversationEntry]] = []
        self._socket = socket
        self._judge = judge
        self._name = name
        self._start_s = time.monotonic()
        self._judge_upgrade()

    def _judge_upgrade(self) -> None:
        entry = self.record_event(f"101 {CONNECTION_HEADER}: {self.id or 'none'}")
        if self.id:
            self._judge.count_occasion("ACP-WS-001")
        else:
            self._judge.record_breach("ACP-WS-001", f"the upgrade was answered without {CONNECTION_HEADER}", (entry,))

    def record_event(self, event: str) -> ConversationEntry:
        """Record an event."""
        return self._judge.conversation.add("agent", b"", time.monotonic() - self._start_s, f"{self._name}: {event}")

    async def send(self, line: bytes, *, is_text: bool = True) -> None:
        """Send a frame."""
        self._judge.conversation.add("client", line, time.monotonic() - self._start_s)
        with suppress(ConnectionClosed):
            await self._socket.send(line, text=is_text)

    def count_answers(self, request_id: int | str) -> int:
        """Return how many responses to a request have arrived."""
        return sum(is_answer(message, request_id) for message, _ in self.received)

    async def read(self, request_id: int | str, timeout_s: float) -> bool:
        """Read until a request is answered. Return False on a timeout, or if the socket is closed."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(timeout_s):
                while not self.count_answers(request_id):
                    self._receive(await self._socket.recv())
        return self.count_answers(request_id) > 0

    async def read_rest(self) -> None:
        """Read further frames for a short time."""
        with suppress(TimeoutError, ConnectionClosed):
            async with asyncio.timeout(LATE_S):
                while True:
                    self._receive(await self._socket.recv())

    def _receive(self, frame: str | bytes) -> None:
        line = frame.encode(errors="replace") if isinstance(frame, str) else frame
        entry = self._judge.conversation.add("agent", line, time.monotonic() - self._start_s)
        message = decode_object(line)
        if message is None or not isinstance(frame, str):
            detail = "a text frame is not one JSON-RPC message" if isinstance(frame, str) else "a frame is binary"
            self._judge.record_breach("ACP-WS-002", detail, (entry,))
        else:
            self._judge.count_occasion("ACP-WS-002")
        if message is not None:
            self.received.append((message, entry))


@asynccontextmanager
async def _greeted(stage: Stage, judge: Judge, name: str) -> AsyncGenerator[_ProbeSocket | None]:
    """Open a WebSocket and initialize. Yield None if there is none, or if it does not answer."""
    address = Address.parse(stage.options.url, token=stage.options.token)
    try:
        socket = await connect_websocket(address)
    except NoWebSocketError:  # a server may only support HTTP
        yield None
        return
    async with socket:
        probe = _ProbeSocket(socket, judge, name)
        services = ClientServices(stage.root, stage.options.without, stage.dialect.version)
        hello = stage.initialize_params(stage.dialect.version, services.capabilities)
        await probe.send(encode("initialize", hello, INITIALIZE_ID))
        yield probe if await probe.read(INITIALIZE_ID, stage.options.start_timeout_s) else None


async def frames(stage: Stage) -> None:
    """Frames over two WebSockets."""
    judge = Judge(RecordedConversation("WebSocket"))
    judge.assume(stage.dialect.version)
    stage.knowledge.judges.append(judge)
    async with _greeted(stage, judge, "first") as one, _greeted(stage, judge, "second") as other:
        if one is None or other is None:
            return
        await _judge_separation(stage, judge, one, other)
        await _judge_binary(stage, judge, one)


async def _judge_separation(stage: Stage, judge: Judge, one: _ProbeSocket, other: _ProbeSocket) -> None:
    """Use the same JSON-RPC id on two sockets concurrently, and judge whether each has its own answer."""
    if one.id and one.id == other.id:
        entry = one.record_event(f"{CONNECTION_HEADER}: {one.id}, twice")
        judge.record_breach("ACP-WS-004", f"two WebSockets have the same {CONNECTION_HEADER}", (entry,))
        return
    for socket in (one, other):
        await socket.send(encode(UNKNOWN_METHOD, {}, "same"))
    answered = [await socket.read("same", stage.options.timeout_s) for socket in (one, other)]
    for socket in (one, other):
        await socket.read_rest()
    counts = [socket.count_answers("same") for socket in (one, other)]
    if not any(answered):
        return
    if counts == [1, 1]:
        judge.count_occasion("ACP-WS-004")
        return
    entries = tuple(entry for each in (one, other) for message, entry in each.received if is_answer(message, "same"))
    detail = f"two WebSockets used the same JSON-RPC id, and had {counts[0]} and {counts[1]} responses, not one each"
    judge.record_breach("ACP-WS-004", detail, entries)


async def _judge_binary(stage: Stage, judge: Judge, socket: _ProbeSocket) -> None:
    await socket.send(encode(UNKNOWN_METHOD, {}, "binary"), is_text=False)
    await socket.send(encode(UNKNOWN_METHOD, {}, "text"))
    is_alive = await socket.read("text", stage.options.timeout_s)
    await socket.read_rest()
    answers = tuple(entry for message, entry in socket.received if is_answer(message, "binary"))
    if answers:
        judge.record_breach("ACP-WS-003", "a request in a binary frame was answered", answers)
    elif not is_alive:
        entry = socket.record_event("no answer to a text frame")
        judge.record_breach("ACP-WS-003", "after a binary frame, a request in a text frame got no answer", (entry,))
    else:
        judge.count_occasion("ACP-WS-003")
