"""A connection of an HTTP client to us: requests come out whole, answers go in. h11 does the protocol."""

import asyncio
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Self

import h11
import msgspec

MAX_HEAD_BYTES = 64 * 1024
"""Request line and headers: several times what any client sends."""

CLOSE_TIMEOUT_S = 1.0
"""How long closing waits for the client to take what was written."""

_READ_BYTES = 64 * 1024
_PLAIN_TEXT = "text/plain; charset=utf-8"


class HttpRequest(msgspec.Struct, frozen=True):
    """A request; the names of its headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""


async def open_connection(client: socket.socket, *, idle_timeout_s: float, max_body_bytes: int) -> "HttpConnection":
    """Speak over a socket that was accepted, which is the channel's from now on."""
    reader, writer = await asyncio.open_connection(sock=client)
    return HttpConnection(reader, writer, idle_timeout_s=idle_timeout_s, max_body_bytes=max_body_bytes)


class HttpConnection:
    """Speaks HTTP/1.1 with one client; use it as an async context manager, which closes it."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, idle_timeout_s: float, max_body_bytes: int
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._idle_timeout_s = idle_timeout_s
        self._max_body_bytes = max_body_bytes
        self._http = h11.Connection(h11.SERVER, MAX_HEAD_BYTES)
        self._takes_body = True

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()

    async def next_request(self) -> HttpRequest | None:
        """Wait for a request; None when there will be no more. What is no HTTP is refused here."""
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._http.start_next_cycle()
        elif self._http.our_state is not h11.IDLE:
            return None
        try:
            async with asyncio.timeout(self._idle_timeout_s):
                return await self._read()
        except h11.RemoteProtocolError as error:
            await self.respond(error.error_status_hint, str(error).encode(), {"content-type": _PLAIN_TEXT})
        except (TimeoutError, OSError):
            pass
        return None

    async def respond(self, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        """Answer the request."""
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = body if self._takes_body else b""
        head = {**(headers or {}), "content-length": str(len(body))}
        data = self._http.send(h11.Response(status_code=status, headers=list(head.items()))) or b""
        data += self._http.send(h11.Data(data=body)) or b""
        await self._send(data + (self._http.send(h11.EndOfMessage()) or b""))

    async def begin_events(self, headers: Mapping[str, str]) -> None:
        """Answer the request with a stream of events."""
        head = {**headers, "content-type": "text/event-stream", "cache-control": "no-store"}
        await self._send(self._http.send(h11.Response(status_code=200, headers=list(head.items()))) or b"")

    async def send_event(self, message: bytes) -> None:
        """Send an event with one line of data."""
        await self._send(self._http.send(h11.Data(data=b"event: message\ndata: " + message + b"\n\n")) or b"")

    async def end_events(self) -> None:
        """End the stream of events, and with it the answer."""
        await self._send(self._http.send(h11.EndOfMessage()) or b"")

    async def _read(self) -> HttpRequest | None:
        head: h11.Request | None = None
        body = bytearray()
        while True:
            match event := await self._next_event():
                case h11.Request():
                    head = event
                    self._takes_body = event.method != b"HEAD"
                case h11.Data():
                    body += event.data
                    if len(body) > self._max_body_bytes:
                        words = f"the body is longer than {self._max_body_bytes} bytes, the limit"
                        raise h11.RemoteProtocolError(words, 413)
                case h11.EndOfMessage() if head is not None:
                    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
                    return HttpRequest(head.method.decode(), head.target.decode(), named, bytes(body))
                case _:
                    return None

    async def _next_event(self) -> object:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._send(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            self._http.receive_data(await self._reader.read(_READ_BYTES))
        return event

    async def _send(self, data: bytes) -> None:
        self._writer.write(data)
        with suppress(OSError):  # a client that has gone gets nothing, and asks nothing more
            await self._writer.drain()
