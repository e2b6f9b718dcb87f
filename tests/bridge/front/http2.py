"""An HTTP/2 client with explicit control over reading, by prior knowledge or over TLS."""

import asyncio
import json
import ssl
from collections import defaultdict
from typing import Any, Self

import h2.config
import h2.connection
import h2.events

from tests.bridge.front.client import PATIENCE_S
from tests.bridge.front.serving import Serving


class Http2Client:
    """One connection, with control over what is read and acknowledged."""

    def __init__(self, served: Serving, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.core = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
        self.reader = reader
        self.writer = writer
        self.heads: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytearray] = defaultdict(bytearray)
        self.ended: set[int] = set()
        self.resets: dict[int, int] = {}
        self.pings = 0
        self.frozen: set[int] = set()
        self.eager: set[int] = set()
        self.updates = 0
        self.is_closed = False
        self._served = served
        self._changed = asyncio.Condition()
        self._runner: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self.core.initiate_connection()
        await self.flush()
        self._runner = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.pause()
        self.writer.transport.abort()
        await asyncio.gather(self._runner, return_exceptions=True)

    def pause(self) -> None:
        """Stop reading from the network."""
        self._runner.cancel()

    async def flush(self) -> None:
        self.writer.write(self.core.data_to_send())
        await self.writer.drain()

    async def ask(
        self, method: str, path: str, *, end: bool = True, frozen: bool = False, eager: bool = False, **headers: str
    ) -> int:
        """Send the head of a request. Acknowledge every frame of an eager answer, and none of a frozen one."""
        stream = self.core.get_next_available_stream_id()
        names = [(name.replace("_", "-"), value) for name, value in {**self._served.headers, **headers}.items()]
        if frozen:
            self.frozen.add(stream)
        if eager:
            self.eager.add(stream)
        place = [(":authority", f"127.0.0.1:{self._served.port}"), (":scheme", self._served.scheme)]
        self.core.send_headers(stream, [(":method", method), (":path", path), *place, *names], end_stream=end)
        await self.flush()
        return stream

    async def post(self, message: dict[str, Any] | bytes, **headers: str) -> int:
        body = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        stream = await self.ask("POST", "/acp", end=False, content_type="application/json", **headers)
        for start in range(0, len(body), 16_000):
            piece = body[start : start + 16_000]
            if stream in self.ended or stream in self.resets:
                return stream
            await self.wait(lambda piece=piece: self._may_send(stream, len(piece)))
            if stream in self.ended or stream in self.resets:
                return stream
            self.core.send_data(stream, piece)
            await self.flush()
        self.core.end_stream(stream)
        await self.flush()
        return stream

    def _may_send(self, stream: int, size: int) -> bool:
        return stream in self.ended or stream in self.resets or self.core.local_flow_control_window(stream) >= size

    async def answered(self, stream: int) -> tuple[int, bytes]:
        await self.wait(lambda: stream in self.ended)
        return int(self.heads[stream][":status"]), bytes(self.bodies[stream])

    async def wait(self, what) -> None:
        async with asyncio.timeout(PATIENCE_S), self._changed:
            await self._changed.wait_for(what)

    async def _run(self) -> None:
        while data := await self.reader.read(65536):
            for event in self.core.receive_data(data):
                self._note(event)
            await self.flush()
            async with self._changed:
                self._changed.notify_all()
        self.is_closed = True
        async with self._changed:
            self._changed.notify_all()

    def _note(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.ResponseReceived():
                self.heads[event.stream_id] = dict(event.headers)
            case h2.events.DataReceived():
                self.bodies[event.stream_id] += event.data
                if event.stream_id in self.eager and event.flow_controlled_length:
                    self.core.increment_flow_control_window(event.flow_controlled_length)
                    self.core.increment_flow_control_window(event.flow_controlled_length, event.stream_id)
                    self.updates += 2
                elif event.stream_id not in self.frozen:
                    self.core.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                else:
                    self.core.increment_flow_control_window(event.flow_controlled_length)
            case h2.events.StreamEnded():
                self.ended.add(event.stream_id)
            case h2.events.StreamReset():
                self.resets[event.stream_id] = event.error_code
            case h2.events.PingReceived():
                self.pings += 1


async def connect_http2(served: Serving, tls: ssl.SSLContext | None = None) -> Http2Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=tls)
    return Http2Client(served, reader, writer)


async def open_viewer(client: Http2Client) -> str:
    """Open a connection and return its id."""
    params = {"protocolVersion": 1, "clientCapabilities": {}}
    stream = await client.post({"id": 0, "method": "initialize", "params": params})
    status, _ = await client.answered(stream)
    assert status == 200
    return client.heads[stream]["acp-connection-id"]


async def open_session(client: Http2Client, viewer: str) -> str:
    """Create a session, with a temporary connection stream."""
    events = await client.ask("GET", "/acp", accept="text/event-stream", acp_connection_id=viewer)
    params = {"cwd": "/", "mcpServers": []}
    await client.post({"id": 1, "method": "session/new", "params": params}, acp_connection_id=viewer)
    await client.wait(lambda: b"sessionId" in client.bodies[events])
    client.core.reset_stream(events)
    await client.flush()
    line = next(line for line in client.bodies[events].split(b"\n") if b"sessionId" in line)
    return json.loads(line.removeprefix(b"data: "))["result"]["sessionId"]


async def prompt(client: Http2Client, viewer: str, session: str, **order: Any) -> None:
    params = {"sessionId": session, "prompt": [{"type": "text", "text": json.dumps(order)}]}
    message = {"id": 2, "method": "session/prompt", "params": params}
    stream = await client.post(message, acp_connection_id=viewer, acp_session_id=session)
    assert (await client.answered(stream))[0] == 202
