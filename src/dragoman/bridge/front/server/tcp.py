"""One TCP connection, which carries HTTP/1.1, HTTP/2 or a WebSocket.

    OPENING ──connected (and TLS agreed)──► OPEN ──finish──► ENDING ──► LOST
                                              └────── cut, or the peer left ──►┘

Work is done in turns. A protocol processes a bounded number of frames or events, then other tasks of the event loop
run, and then the protocol continues. Nothing is read from the socket while another turn is scheduled, or while the
application has not read its input.

A closing connection still sends its buffer. For a while, arriving input is read and dropped. The reason is that closing
a socket with unread input resets the connection, and the reset can destroy the answer that explains the error.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from enum import Enum, auto
from typing import Any, Protocol, cast

import msgspec

from dragoman.bridge.front.asgi import AsgiApplication
from dragoman.bridge.front.limits import ServerLimits
from dragoman.bridge.guard.rate_limit import TokenBucket

_log = logging.getLogger("dragoman.bridge.front")


class Phase(Enum):
    """The phase of a connection. The diagram above shows the transitions."""

    OPENING = auto()
    OPEN = auto()
    ENDING = auto()
    LOST = auto()


class ConnectionProtocol(Protocol):
    """The protocol of a connection: HTTP/1.1, HTTP/2, a WebSocket, or the detection of one of them."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is running."""
        ...

    @property
    def is_full(self) -> bool:
        """Whether reading pauses until the application reads some of the input."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """Bytes of the application that flow control holds back."""
        ...

    def receive(self, data: bytes) -> None:
        """Add received bytes to the input, which `advance` processes."""
        ...

    def advance(self) -> bool:
        """Do one turn of work. Return whether another turn can follow at once."""
        ...

    def ping(self) -> bytes | None:
        """Return a frame that the peer must answer, or None if the protocol has none."""
        ...

    def stop(self) -> None:
        """Refuse new requests, and close once the running ones are answered."""
        ...

    def mark_gone(self) -> None:
        """Notify the application that the peer has disconnected."""
        ...


class ServerContext(msgspec.Struct, kw_only=True):
    """The objects that all connections of one server share."""

    app: AsgiApplication
    limits: ServerLimits
    max_message_bytes: int
    stall_s: float
    spawn: Callable[[Coroutine[Any, Any, None]], object]
    """Runs the application for a request."""
    on_credential: "Callable[[TcpConnection, str | None], None]"
    """Called for each request with a valid credential, with the share id of a reader or None for the owner."""
    on_lost: "Callable[[TcpConnection], None]"
    is_stopping: bool = False


class TcpConnection(asyncio.Protocol):
    """Carries bytes for a protocol at the speed at which the peer and the application read."""

    def __init__(self, context: ServerContext, start: "Callable[[TcpConnection], ConnectionProtocol]") -> None:
        self.context = context
        self.idle_frames = TokenBucket(context.limits.anonymous_frames)
        self._loop = asyncio.get_running_loop()
        self._phase = Phase.OPENING
        self._protocol = start(self)
        self._liveness = Liveness(self._loop.time())
        self._idle_since = self._loop.time()
        self._turn: asyncio.Handle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._discarded_bytes = 0
        self._drain_waiters: list[asyncio.Future[None]] | None = None
        """Writers that wait until the peer reads, or None while the buffer has room."""

    # ── calls of asyncio ────────────────────────────────────────────────────────────────────────────

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._phase = Phase.OPEN
        self._idle_since = self._loop.time()

    def data_received(self, data: bytes) -> None:
        if self._phase is not Phase.OPEN:
            self._discard(len(data))
            return
        self._liveness.record_input(self._loop.time())
        self._protocol.receive(data)
        if self._turn is None:
            self._advance()

    def eof_received(self) -> None:
        if self._phase is Phase.OPEN:  # half-closed: the peer may have closed both directions
            self._protocol.mark_gone()
            self.finish()

    def pause_writing(self) -> None:
        self._drain_waiters = []

    def resume_writing(self) -> None:
        waiters, self._drain_waiters = self._drain_waiters or [], None
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            _log.debug("a connection was lost: %r", exc)
        was_open, self._phase = self._phase is Phase.OPEN, Phase.LOST
        for handle in (self._turn, self._end):
            if handle is not None:
                handle.cancel()
        self.resume_writing()
        if was_open:
            self._protocol.mark_gone()
        self.context.on_lost(self)

    # ── calls of protocols ───────────────────────────────────────────────────────────────────────────

    @property
    def scheme(self) -> str:
        """The scheme, http or https."""
        return "http" if self._transport.get_extra_info("ssl_object") is None else "https"

    @property
    def alpn(self) -> str | None:
        """The protocol selected by ALPN, or None without TLS."""
        ssl_object = self._transport.get_extra_info("ssl_object")
        return None if ssl_object is None else ssl_object.selected_alpn_protocol()

    def address(self, name: str) -> tuple[str, int] | None:
        """Return `peername` or `sockname` in the form of ASGI."""
        address: tuple[str, int] | None = self._transport.get_extra_info(name)
        return None if address is None else (address[0], address[1])

    @property
    def is_open(self) -> bool:
        """Whether the connection can still be written to."""
        return self._phase is Phase.OPEN

    @property
    def unsent_bytes(self) -> int:
        """Bytes that were written but not sent yet."""
        if self._phase in {Phase.OPENING, Phase.LOST}:
            return 0
        return self._transport.get_write_buffer_size() + self._protocol.unsent_bytes

    def write(self, data: bytes) -> None:
        """Send bytes, unless the connection has ended. After large writes the caller awaits `drained`."""
        if self._phase is Phase.OPEN and data:
            self._liveness.record_output(len(data))
            self._transport.write(data)

    @property
    def has_room(self) -> bool:
        """Whether `drained` would return at once."""
        return self._drain_waiters is None and self._phase is Phase.OPEN

    async def drained(self) -> None:
        """Wait until the buffer has room. Raises ConnectionResetError if the connection ends first."""
        if self._drain_waiters is not None:
            waiter = self._loop.create_future()
            self._drain_waiters.append(waiter)
            await waiter
        if self._phase is not Phase.OPEN:
            raise ConnectionResetError("the connection has ended")

    def advance_soon(self) -> None:
        """Schedule another turn of work, because the application has read some input."""
        if self._turn is None and self._phase is Phase.OPEN:
            self._turn = self._loop.call_soon(self._advance)

    def switch_to(self, protocol: ConnectionProtocol) -> None:
        """Use another protocol from now on."""
        self._protocol = protocol
        self.advance_soon()

    def record_use(self) -> None:
        """Restart the idle time, because a request was answered."""
        self._idle_since = self._loop.time()

    def record_credential(self, share_id: str | None) -> None:
        """Raise the limit of frames without content, because a request had a valid credential."""
        self.idle_frames.change_rate(self.context.limits.frames)
        self.context.on_credential(self, share_id)

    def finish(self, *, discard: bool = False) -> None:
        """Send the buffer and close. With `discard`, read and drop further input until then."""
        if self._phase is not Phase.OPEN:
            return
        self._phase = Phase.ENDING
        self.expect_end()
        if not discard:
            self._transport.close()
            return
        self._transport.resume_reading()
        if self._transport.can_write_eof():
            self._transport.write_eof()

    def expect_end(self) -> None:
        """Cut the connection if it does not end within the linger time."""
        if self._end is None:
            self._end = self._loop.call_later(self.context.limits.linger_s, self.abort)

    def abort(self) -> None:
        """Cut the connection. Unsent bytes are lost."""
        if self._phase in {Phase.OPEN, Phase.ENDING}:
            self._transport.abort()

    # ── calls of the server ─────────────────────────────────────────────────────────────────────────

    def check(self, now: float) -> None:
        """Check the peer: ping it when due, cut the connection if it is dead or stalled, and close an idle one."""
        if self._phase is not Phase.OPEN:
            return
        limits, ping = self.context.limits, self._protocol.ping()
        if not self._protocol.is_idle:
            self._idle_since = now
        elif now - self._idle_since >= limits.idle_s:
            self.stop()
            return
        unsent = self._transport.get_write_buffer_size()
        verdict = self._liveness.judge(now, unsent, limits, self.context.stall_s, can_ping=ping is not None)
        if verdict is LivenessAction.CUT:
            self.abort()
        elif verdict is LivenessAction.PING and ping is not None:
            self.write(ping)

    def stop(self) -> None:
        """Close the connection as soon as no request is running."""
        if self._phase is Phase.OPEN:
            self._protocol.stop()

    # ── turns ───────────────────────────────────────────────────────────────────────────────────────

    def _advance(self) -> None:
        self._turn = None
        if self._phase is not Phase.OPEN:
            return
        try:
            has_more = self._protocol.advance()
        except Exception:  # noqa: BLE001 -- boundary: a failed connection must not end others
            _log.exception("a connection failed")
            self.abort()
            return
        if self._phase is not Phase.OPEN:
            return
        if has_more:
            self.advance_soon()
        if self._turn is not None or self._protocol.is_full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _discard(self, size: int) -> None:
        self._discarded_bytes += size
        if self._discarded_bytes > self.context.limits.linger_bytes:
            self.abort()


class LivenessAction(Enum):
    """The action that a connection needs after a check."""

    NOTHING = "nothing"
    PING = "ping"
    CUT = "cut"


class Liveness:
    """Detects whether the peer of a connection is alive, and whether it reads.

    Input proves that the peer is alive. WebSockets and HTTP/2 have pings, which every peer must answer. HTTP/1.1 has
    none, but a dead machine does not acknowledge the comments in an event stream, and TCP detects that. A shrinking
    buffer proves that the peer reads.
    """

    def __init__(self, now: float) -> None:
        self._input_at = now
        self._read_at = now
        self._pinged_at = 0.0
        self._written_bytes = 0
        self._read_bytes = 0
        self._unsent_bytes = 0

    def record_input(self, now: float) -> None:
        """Store the time of the last input."""
        self._input_at = now

    def record_output(self, size: int) -> None:
        """Count written bytes."""
        self._written_bytes += size

    def judge(
        self, now: float, unsent_bytes: int, limits: ServerLimits, stall_s: float, *, can_ping: bool
    ) -> LivenessAction:
        """Return the action that the connection needs now. After PING, the ping counts as sent."""
        # Written bytes that are no longer in the buffer were sent. An empty or shrinking buffer shows that the peer
        # reads.
        read_bytes = self._written_bytes - unsent_bytes
        if read_bytes > self._read_bytes or unsent_bytes == 0:
            self._read_at = now
        if read_bytes > self._read_bytes and self._unsent_bytes > 0:
            self._input_at = now  # a peer that reads is alive
        self._read_bytes, self._unsent_bytes = read_bytes, unsent_bytes
        # Silence counts only after a ping, because otherwise the peer had no reason to answer.
        is_silent = self._pinged_at > self._input_at and now - self._input_at >= limits.silence_s
        if is_silent or now - self._read_at >= stall_s:
            return LivenessAction.CUT
        if can_ping and unsent_bytes == 0 and now - max(self._input_at, self._pinged_at) >= limits.ping_s:
            self._pinged_at = now
            return LivenessAction.PING
        return LivenessAction.NOTHING


def watch_peers(listening: socket.socket, limits: ServerLimits) -> None:
    """Set the options by which TCP detects dead machines. Accepted sockets inherit them."""
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    silence_s, ping_s = int(limits.silence_s), int(limits.ping_s)
    options = {"TCP_KEEPIDLE": ping_s, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4, "TCP_USER_TIMEOUT": silence_s * 1000}
    for name, value in options.items():
        if hasattr(socket, name):  # not every system has all of them
            listening.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(1, value))
