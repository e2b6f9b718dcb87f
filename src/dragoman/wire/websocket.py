"""Lines over a WebSocket: one message a text frame."""

import asyncio
import logging
import ssl
from collections import deque

from websockets.asyncio.client import connect
from websockets.asyncio.connection import Connection
from websockets.exceptions import ConnectionClosed as WebSocketClosed
from websockets.exceptions import InvalidHandshake, InvalidStatus, InvalidURI

from dragoman.errors import ConnectionClosed
from dragoman.wire.address import Address, AddressFailed, explain_os_error
from dragoman.wire.outbox import Outbox
from dragoman.wire.transport import CLOSE_TIMEOUT_S, Receiver

MAX_FRAME_BYTES = 16 * 1024 * 1024
"""Longest message on the network, to be given as `max_size` to whoever makes the connection."""

OPEN_TIMEOUT_S = 15.0
"""As long as browsers try, roughly; an address that does not answer at all is mostly a wrong one."""

PING_INTERVAL_S = 20.0
"""How often the server is asked for a sign of life, and how long it has for it: a pulled network is noticed in 40 s."""

_silent = logging.Logger("dragoman.wire.websocket", logging.CRITICAL + 1)  # noqa: LOG001 -- nobody can turn it on
"""The library would log the headers of the handshake, and with them the token."""


class NoWebSocket(AddressFailed):
    """Something answered, but it did not open a WebSocket; there may be another way to it."""


class WebSocketTransport:
    """Carries lines over an open WebSocket connection, which it owns from now on."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._outbox = Outbox()
        self._unsent: deque[bytes] = deque()
        self._may_read = asyncio.Event()
        self._may_read.set()
        self._has_unsent = asyncio.Event()
        self._closed = False

    @property
    def unsent_bytes(self) -> int:
        return self._outbox.unsent_bytes

    @property
    def can_write(self) -> bool:
        return not self._closed

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._reader = tasks.create_task(self._read(receiver))
        self._writer = tasks.create_task(self._write())

    def write(self, lines: bytes | bytearray) -> None:
        if self._closed:
            return
        for line in bytes(lines).removesuffix(b"\n").split(b"\n"):
            self._unsent.append(line)
            self._outbox.add(len(line))
        self._has_unsent.set()

    async def drained(self) -> None:
        await self._outbox.drained()

    def pause_reading(self) -> None:
        self._may_read.clear()

    def resume_reading(self) -> None:
        self._may_read.set()

    async def explain_end(self) -> ConnectionClosed:
        code, reason = self._connection.close_code, self._connection.close_reason
        said = f" ({reason})" if reason else ""
        return ConnectionClosed(f"the WebSocket was closed with code {code}{said}")

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._outbox.drained(below=0)
                await self._connection.close()
        except TimeoutError:
            self._connection.transport.abort()
        finally:
            self._give_up()
            self._reader.cancel()
            self._writer.cancel()

    async def _read(self, receiver: Receiver) -> None:
        try:
            while True:
                await self._may_read.wait()
                frame = await self._connection.recv(decode=False)
                # A newline in JSON can only be blank space, and elsewhere it ends the message.
                receiver.lines_received([frame.replace(b"\n", b" ")])
        except WebSocketClosed:
            self._give_up()
            receiver.input_ended(drained=False)

    async def _write(self) -> None:
        try:
            while True:
                await self._has_unsent.wait()
                while self._unsent:
                    line = self._unsent.popleft()
                    await self._connection.send(line, text=True)
                    self._outbox.sent(len(line))
                self._has_unsent.clear()
        except WebSocketClosed:
            self._give_up()

    def _give_up(self) -> None:
        self._closed = True
        self._unsent.clear()
        self._outbox.close()


async def open_websocket(address: Address, tls: ssl.SSLContext | None = None) -> WebSocketTransport:
    """Open a WebSocket; raises NoWebSocket when something else answers there, and AddressFailed when nothing does."""
    context = (tls or ssl.create_default_context()) if address.is_secure else None
    if context is not None:
        context.set_alpn_protocols(["http/1.1"])  # WebSockets over HTTP/2 are another thing
    opening = _Open(
        address.websocket_url,
        additional_headers=dict(address.headers),
        compression=None,
        open_timeout=OPEN_TIMEOUT_S,
        ping_interval=PING_INTERVAL_S,
        ping_timeout=PING_INTERVAL_S,
        max_size=MAX_FRAME_BYTES,
        logger=_silent,
        ssl=context,
    )
    try:
        return WebSocketTransport(await opening)
    except InvalidStatus as refused:
        failure = address.refuse(refused.response.status_code, bytes(refused.response.body or b""))
        raise NoWebSocket(failure.url, failure.problem, status=failure.status) from None
    except (InvalidHandshake, EOFError):
        raise NoWebSocket(address.shown, "answered, but opened no WebSocket; see that it speaks ACP") from None
    except TimeoutError:
        raise address.fail(f"did not answer within {OPEN_TIMEOUT_S:g} s") from None
    except (OSError, InvalidURI, UnicodeError) as error:
        raise address.fail(f"cannot be reached: {explain_os_error(error)}") from None


class _Open(connect):
    """Follows no redirect, for the token is meant for the address that was given."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc
