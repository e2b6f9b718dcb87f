"""The server on one listening socket: HTTP/1.1, HTTP/2 (with TLS, or by prior knowledge) and WebSockets."""

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Coroutine
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from dragoman.bridge.front.app import Application
from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.front.server.http1 import Http1
from dragoman.bridge.front.server.http2 import Http2
from dragoman.bridge.front.server.tcp import ServerContext, TcpConnection, watch_peers
from dragoman.errors import DragomanError

HTTP2_ALPN = "h2"
HTTP1_ALPN = "http/1.1"


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
"""The first bytes of an HTTP/2 client (RFC 9113, 3.4). No HTTP/1.1 request begins with them."""

TLS_HANDSHAKE_S = 30.0
BACKLOG = 512
ACCEPTS_PER_TURN = 16
"""New connections per turn of the event loop, so that open connections are served as well."""

NO_DESCRIPTORS_PAUSE_S = 0.1
"""Pause when the process or the system has run out of file descriptors."""

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n"
"""The answer to a connection that is refused before its protocol is known."""

_log = logging.getLogger("dragoman.bridge.front")


class ListenError(DragomanError):
    """The bridge cannot listen on an address, or cannot use a certificate."""


class Tls(msgspec.Struct, frozen=True):
    """The PEM files of a certificate chain and its key."""

    certificate: Path
    key: Path


def make_context(tls: Tls) -> ssl.SSLContext:
    """Return a TLS context that meets the rules of HTTP/2 (RFC 9113, 9.2). Raises ListenError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    context.set_alpn_protocols([HTTP2_ALPN, HTTP1_ALPN])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        problem = error.strerror or "they do not match, or are not PEM files"
        raise ListenError(f"cannot use {tls.certificate} and {tls.key} for TLS: {problem}") from None
    return context


class Server:
    """Serves an application on a listening socket. Use it as an async context manager."""

    def __init__(
        self,
        app: Application,
        listening: socket.socket,
        *,
        limits: ServerLimits | None = None,
        tls: Tls | None = None,
        stall_s: float = 30,
    ) -> None:
        limits = limits or ServerLimits()
        self._app = app
        self._limits = limits
        self._listening = listening
        self._tls = None if tls is None else make_context(tls)
        self._context = ServerContext(
            app=app,
            limits=limits,
            max_message_bytes=app.max_message_bytes,
            stall_s=stall_s,
            spawn=self._spawn,
            on_credential=self._record_credential,
            on_lost=self._forget,
        )
        self._requests: set[asyncio.Task[None]] = set()
        self._opening: dict[TcpConnection, asyncio.Task[None]] = {}
        """Connections during the TLS handshake, which takes several round trips."""
        self._connections: dict[TcpConnection, None] = {}
        """All connections, oldest first."""
        self._anonymous: dict[TcpConnection, None] = {}
        """Connections without a valid credential so far, oldest first."""
        self._readers: dict[str, dict[TcpConnection, None]] = {}
        """Connections used only by readers, by share, oldest first."""
        self._emptied = asyncio.Event()
        self._emptied.set()

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        watch_peers(self._listening, self._limits)
        self._listening.setblocking(False)
        self._listening.listen(BACKLOG)
        self._loop.add_reader(self._listening, self._accept)
        self._watch = asyncio.ensure_future(self._check_connections())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.shield(self._stop())

    @property
    def open_connections(self) -> int:
        """The number of TCP connections."""
        return len(self._connections)

    @property
    def unsent_bytes(self) -> int:
        """Bytes in the buffers of all connections."""
        return sum(connection.unsent_bytes for connection in self._connections)

    async def _stop(self) -> None:
        """Close the listening socket, wait for open streams to end, and cut the rest."""
        self._context.is_stopping = True
        self._loop.remove_reader(self._listening)
        self._listening.close()
        self._watch.cancel()
        for task in self._opening.values():
            task.cancel()
        await self._app.stop()
        for connection in list(self._connections):
            connection.stop()
        await self._wait_empty()
        for connection in list(self._connections):
            connection.abort()
        for task in self._requests:
            task.cancel()
        await asyncio.gather(*self._requests, *self._opening.values(), return_exceptions=True)
        await self._wait_empty()

    async def _wait_empty(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._limits.stop_s):
                await self._emptied.wait()

    # ── connections ─────────────────────────────────────────────────────────────────────────────────

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                peer, _ = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in _NO_DESCRIPTORS:
                    raise
                self._wait_for_descriptors(error)
                return
            peer.setblocking(False)
            self._admit(peer)

    def _wait_for_descriptors(self, error: OSError) -> None:
        _log.warning("a connection could not be accepted: %s", error.strerror)
        self._make_room()
        self._loop.remove_reader(self._listening)
        self._loop.call_later(NO_DESCRIPTORS_PAUSE_S, self._listen_again)

    def _listen_again(self) -> None:
        if not self._context.is_stopping:
            self._loop.add_reader(self._listening, self._accept)

    def _admit(self, peer: socket.socket) -> None:
        if len(self._connections) >= self._limits.max_sockets and not self._make_room():
            if self._tls is None:
                with suppress(OSError):
                    peer.send(_BUSY)
            peer.close()
            return
        connection = TcpConnection(self._context, ProtocolDetector)
        self._connections[connection] = self._anonymous[connection] = None
        self._emptied.clear()
        task = self._opening[connection] = self._loop.create_task(self._connect(connection, peer))

        def connected(task: asyncio.Task[None]) -> None:
            self._opening.pop(connection, None)
            if task.cancelled() or task.exception() is not None:
                self._forget(connection)
                peer.close()

        task.add_done_callback(connected)

    async def _connect(self, connection: TcpConnection, peer: socket.socket) -> None:
        handshake_s = None if self._tls is None else TLS_HANDSHAKE_S
        await self._loop.connect_accepted_socket(
            lambda: connection, peer, ssl=self._tls, ssl_handshake_timeout=handshake_s
        )

    def _make_room(self) -> bool:
        """Cut a connection to make room for a new one. Return False if all connections are the owner's.

        The cut connection is the oldest of the largest group: the anonymous connections, or the readers of one share.
        A flood of connections can therefore only cut connections of its own group.
        """
        largest = max([self._anonymous, *self._readers.values()], key=len)
        oldest = next(iter(largest), None)
        if oldest is None:
            return False
        opening = self._opening.get(oldest)
        self._forget(oldest)
        if opening is not None:
            opening.cancel()
        oldest.abort()
        return True

    def _record_credential(self, connection: TcpConnection, share_id: str | None) -> None:
        is_first = self._anonymous.pop(connection, self) is None
        if share_id is None:
            self._forget_reader(connection)
        elif is_first:
            self._readers.setdefault(share_id, {})[connection] = None

    def _forget_reader(self, connection: TcpConnection) -> None:
        for share_id, connections in list(self._readers.items()):
            if connection in connections:
                del connections[connection]
                if not connections:
                    del self._readers[share_id]

    def _forget(self, connection: TcpConnection) -> None:
        self._anonymous.pop(connection, None)
        self._forget_reader(connection)
        self._connections.pop(connection, None)
        if not self._connections:
            self._emptied.set()

    # ── background tasks ────────────────────────────────────────────────────────────────────────────

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)
        task.add_done_callback(lambda _: work.close())  # otherwise a coroutine cancelled before its start warns

    async def _check_connections(self) -> None:
        while True:
            await asyncio.sleep(self._limits.watch_s)
            for connection in list(self._connections):
                connection.check(self._loop.time())


class ProtocolDetector:
    """Detects the protocol of a connection by ALPN, or else by the first bytes."""

    is_idle = True
    is_full = False
    unsent_bytes = 0

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._first = b""

    def receive(self, data: bytes) -> None:
        """Add received bytes to the input."""
        self._first += data

    def advance(self) -> bool:
        """Select the protocol once enough bytes have arrived."""
        size = min(len(self._first), len(PREFACE))
        begins_http2 = self._first[:size] == PREFACE[:size]
        if self._connection.alpn != HTTP2_ALPN and begins_http2 and size < len(PREFACE):
            return False
        protocol = Http2(self._connection) if begins_http2 else Http1(self._connection)
        protocol.receive(self._first)
        self._connection.switch_to(protocol)
        return False

    def ping(self) -> bytes | None:
        """Return None, because the protocol is not known yet."""
        return None

    def stop(self) -> None:
        """Close the connection."""
        self._connection.finish()

    def mark_gone(self) -> None:
        """Do nothing, because no application has started."""
