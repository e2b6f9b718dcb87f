"""One TCP connection, as hypercorn serves it, under a watch that hypercorn does not keep.

Who is there is known by what arrives. WebSockets and HTTP/2 have a frame to ask with, which everybody must answer; in
HTTP/1.1 there is none, so there it is TCP that asks: a machine that is gone does not acknowledge the comments in the
event stream. Who takes what is sent is known by what leaves.
"""

import asyncio
import logging
import socket
from ssl import SSLError

from hypercorn.asyncio.tcp_server import MAX_RECV, TCPServer
from hypercorn.events import Closed, Event, RawData, Updated
from hypercorn.protocol.h2 import H2Protocol
from hypercorn.protocol.h11 import H11Protocol, H11WSConnection
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream

from dragoman.gateway.front.limits import Limits

HTTP2_PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00dragoman"
WEBSOCKET_PING = b"\x89\x00"

_log = logging.getLogger("dragoman.gateway.front")


class TcpConnection(TCPServer):
    """A connection that knows when it last heard something, and when the other side last took something."""

    _is_over = False
    _written = 0
    _left = 0
    _unsent = 0
    _heard_at = 0.0
    _left_at = 0.0
    _pinged_at = 0.0

    async def run(self) -> None:
        self._heard_at = self._left_at = self.loop.time()
        try:
            await super().run()
        except Exception as error:  # noqa: BLE001 -- the end of a connection: what its peer did wrong ends it alone
            _log.debug("a connection ended: %r", error)
        finally:
            self.abort()

    def abort(self) -> None:
        """Cut it, with whatever was not sent."""
        self.writer.transport.abort()

    def check(self, now: float, limits: Limits, stall_s: float) -> None:
        """Ping it when it is time; cut it when nobody answers, or nobody takes what is sent."""
        unsent = self.writer.transport.get_write_buffer_size()
        left = self._written - unsent
        if left > self._left or unsent == 0:
            self._left_at = now
        if left > self._left and self._unsent > 0:
            self._heard_at = now  # to take what was in the way is a sign of life as well
        self._left, self._unsent = left, unsent
        ping = self._ping()
        is_silent = self._pinged_at > self._heard_at and now - self._heard_at >= limits.silence_s
        if is_silent or now - self._left_at >= stall_s:
            self.abort()
        elif ping is not None and unsent == 0 and now - max(self._heard_at, self._pinged_at) >= limits.ping_s:
            self._pinged_at = now
            self._written += len(ping)
            self.writer.write(ping)

    def _ping(self) -> bytes | None:
        """Return the frame that asks the other side for an answer, if this protocol has one."""
        protocol = self.protocol.protocol
        if isinstance(protocol, H2Protocol):
            return HTTP2_PING
        if isinstance(protocol.connection, H11WSConnection) and _is_open(protocol):
            return WEBSOCKET_PING
        return None

    async def protocol_send(self, event: Event) -> None:
        if isinstance(event, RawData):
            self._written += len(event.data)
        if self._is_over and isinstance(event, Updated):
            return  # hypercorn would wait for the next request of somebody who has left
        await super().protocol_send(event)

    async def _read_data(self) -> None:
        while not self.reader.at_eof():
            try:
                data = await self.reader.read(MAX_RECV)
            except (OSError, SSLError):
                break
            self._heard_at = self.loop.time()
            await self.protocol.handle(RawData(data))
        self._is_over = True
        await self.protocol.handle(Closed())
        await self.idle_task.stop()


def _is_open(protocol: H11Protocol) -> bool:
    return isinstance(protocol.stream, WSStream) and protocol.stream.state is ASGIWebsocketState.CONNECTED


def watch_peer(listening: socket.socket, limits: Limits) -> None:
    """Have TCP itself find out about machines that are gone; whatever is accepted here inherits it."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence_s, ping_s = int(limits.silence_s), int(limits.ping_s)
    options = {"TCP_KEEPIDLE": ping_s, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": silence_s * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, value))


async def refuse_connection(writer: asyncio.StreamWriter) -> None:
    """Turn a connection away, in the one protocol that can be spoken before anything was heard."""
    writer.write(
        b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 30\r\ncontent-length: 0\r\n\r\n"
    )
    writer.close()
