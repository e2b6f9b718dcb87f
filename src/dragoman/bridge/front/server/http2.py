"""HTTP/2 on one connection (RFC 9113): many concurrent requests, each at the speed of its reader.

No answer is buffered here. The application waits in `send` until flow control and TCP have room for the piece. A body
is acknowledged when the application reads it, so a client cannot send more than the window.
"""

import asyncio
from collections.abc import Sequence

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
from h2.settings import SettingCodes, Settings

from dragoman.bridge.front.asgi import Headers
from dragoman.bridge.front.server.http2_frames import DATA, HEADERS, FrameHead, FrameScanner, cost_of
from dragoman.bridge.front.server.request import (
    RequestBody,
    RequestHead,
    ServedRequest,
    date_header,
    make_refusal,
    make_scope,
)
from dragoman.bridge.front.server.tcp import TcpConnection

WORK_PER_TURN = 64
"""Frames in one turn. A request counts as several frames, because it starts the application."""

WORK_OF_A_REQUEST = 8
WORK_BYTES = 1024
"""This many bytes of a frame count like one more frame."""


WINDOW_BYTES = 256 * 1024
"""Bytes that a client may send before the application reads them. At 100 ms latency, 16 MiB need seven seconds."""

UPDATES_OF_A_FRAME = 2
"""Window updates that each of our frames causes: one for its stream and one for the connection."""

HEADER_FACTOR = 2
"""Headers up to this many times the limit are read, so that the answer can explain the error."""

PREFACE_BYTES = 24

_PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00dragoman"
_FIELD_OVERHEAD_BYTES = 32
"""Added to name and value for each header (RFC 9113, 6.5.2)."""

_CODES = h2.errors.ErrorCodes


class Http2:
    """Speaks HTTP/2 until the connection ends."""

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._limits = connection.context.limits
        self._core = h2.connection.H2Connection(h2.config.H2Configuration(client_side=False, header_encoding=None))
        self._scanner = FrameScanner(PREFACE_BYTES)
        self._input = b""
        self._streams: dict[int, Http2Stream] = {}
        self._last_id = 0
        self._is_stopping = False
        self._begin()

    @property
    def is_idle(self) -> bool:
        """Whether no request is running. Control frames do not count."""
        return not self._streams

    @property
    def is_full(self) -> bool:
        """Always False, because flow control stops a client that sends faster than the application reads."""
        return False

    @property
    def unsent_bytes(self) -> int:
        """Bytes of the application that flow control holds back."""
        return sum(stream.unsent_bytes for stream in self._streams.values())

    # ── input ───────────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> None:
        """Add received bytes to the input."""
        self._input += data

    def advance(self) -> bool:
        """Process as many frames as fit into one turn."""
        # First read and pay for the heads of frames, up to one turn of work. Then h2 gets exactly those bytes. The rest
        # stays in `_input` for the next turn.
        work = at = 0
        while at < len(self._input) and work < WORK_PER_TURN:
            head, at = self._scanner.next(self._input, at)
            if head is None:
                continue
            work += 1 + head.length // WORK_BYTES + (WORK_OF_A_REQUEST if head.kind == HEADERS else 0)
            if not self._connection.idle_frames.acquire(self._cost(head)):
                self._end(_CODES.ENHANCE_YOUR_CALM, b"too many frames that carry nothing")
                return False
        data, self._input = self._input[:at], self._input[at:]
        try:
            for event in self._core.receive_data(data):
                self._handle(event)
        except h2.exceptions.ProtocolError:
            self.flush()  # h2 has written a GOAWAY with the reason
            self.mark_gone()
            self._connection.finish(discard=True)
            return False
        self.flush()
        self._end_if_done()
        return bool(self._input) and self._connection.is_open

    def ping(self) -> bytes | None:
        """Return a frame that the client must answer."""
        return _PING

    def stop(self) -> None:
        """Refuse new requests, and close once the running ones are answered."""
        self._is_stopping = True
        self._end_if_done()

    def mark_gone(self) -> None:
        """Notify the application that the client has disconnected."""
        for stream in self._streams.values():
            stream.mark_gone()

    # ── calls of streams ────────────────────────────────────────────────────────────────────────────

    def room(self, stream_id: int) -> int:
        """Return how many bytes of an answer can be sent in one frame now."""
        window = self._core.local_flow_control_window(stream_id)
        return min(window, self._core.max_outbound_frame_size)

    def send_head(self, stream_id: int, status: int, headers: Headers, *, is_last: bool) -> None:
        """Queue the head of an answer for the next flush."""
        self._core.send_headers(stream_id, [(b":status", b"%d" % status), *headers], end_stream=is_last)

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Queue a piece of an answer for the next flush. The windows must have room for it."""
        self._core.send_data(stream_id, data, end_stream=is_last)
        self._connection.idle_frames.add(UPDATES_OF_A_FRAME)

    def flush(self) -> None:
        """Write the queued frames."""
        self._connection.write(self._core.data_to_send())

    def has_others(self) -> bool:
        """Return whether there are several streams, which must share the connection."""
        return len(self._streams) > 1

    def acknowledge(self, stream_id: int, size: int) -> None:
        """Reopen the window for bytes of a body that were read or dropped."""
        if self._connection.is_open and size:
            self._core.acknowledge_received_data(size, stream_id)
            self.flush()

    def stream_ended(self, stream: "Http2Stream") -> None:
        """Remove a stream, because the application has finished its request."""
        self._streams.pop(stream.id, None)
        self._connection.record_use()
        if not self._connection.is_open:
            return
        self.acknowledge(stream.id, stream.body.drop())
        if not stream.is_complete:
            self._reset(stream.id, _CODES.CANCEL)  # half an answer must not look like a whole one
        elif not stream.is_received:
            self._reset(stream.id, _CODES.NO_ERROR)  # the rest of its body is not needed
        self._end_if_done()

    # ── frames and events ───────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        longest = HEADER_FACTOR * self._limits.max_header_bytes
        self._core.decoder.max_header_list_size = longest
        values = {
            SettingCodes.MAX_CONCURRENT_STREAMS: self._limits.max_http2_streams,
            SettingCodes.INITIAL_WINDOW_SIZE: WINDOW_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: longest,
        }
        self._core.local_settings = Settings(client=False, initial_values=values)
        self._core.initiate_connection()
        self._core.increment_flow_control_window(WINDOW_BYTES - self._core.inbound_flow_control_window)
        self.flush()

    def _cost(self, head: FrameHead) -> int:
        if head.kind == DATA and head.stream_id not in self._streams and head.stream_id <= self._last_id:
            return 1  # for a finished request
        return cost_of(head, self._is_awaited)

    def _is_awaited(self, stream_id: int) -> bool:
        stream = self._streams.get(stream_id)
        return stream_id > self._last_id if stream is None else not stream.is_answered

    def _handle(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._handle_request(event.stream_id, event.headers, is_whole=event.stream_ended is not None)
            case h2.events.DataReceived():
                self._handle_data(event.stream_id, event.data, event.flow_controlled_length)
            case h2.events.StreamEnded() if event.stream_id in self._streams:
                self._streams[event.stream_id].receive_end()
            case h2.events.StreamReset() if event.stream_id in self._streams:
                self._streams[event.stream_id].mark_gone()
            case h2.events.WindowUpdated() if event.stream_id in self._streams:
                self._streams[event.stream_id].has_room.set()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.has_room.set()
            case h2.events.ConnectionTerminated():
                self._connection.abort()  # after a GOAWAY, h2 sends nothing, and the client has left
            case _:
                pass

    def _handle_request(self, stream_id: int, fields: "Sequence[tuple[bytes, bytes]]", *, is_whole: bool) -> None:
        self._last_id = stream_id
        head = _make_head(fields)
        size = sum(len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in fields)
        limit = self._limits.max_header_bytes
        if size > limit:
            reason = (
                f"the headers of the request are longer than the limit of {limit} bytes; send fewer or shorter ones"
            )
            self._refuse(stream_id, 431, reason, is_whole=is_whole)
        elif head is None:
            reason = "a request needs :method and :path, and its path must be ASCII"
            self._refuse(stream_id, 400, reason, is_whole=is_whole)
        elif self._is_stopping or len(self._streams) >= self._limits.max_http2_streams:
            self._reset(stream_id, _CODES.REFUSED_STREAM)  # cancelled requests that still run count too
        else:
            stream = self._streams[stream_id] = Http2Stream(self._connection, self, stream_id, head)
            self._connection.context.spawn(stream.run(make_scope("http", head, self._connection)))

    def _handle_data(self, stream_id: int, data: bytes, flow_bytes: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.is_lost:
            stream.body.put(data)
            flow_bytes -= len(data)
        self.acknowledge(stream_id, flow_bytes)  # padding, or data for a removed stream

    def _refuse(self, stream_id: int, status: int, reason: str, *, is_whole: bool) -> None:
        """Answer a request that the application does not see."""
        headers, body = make_refusal(reason)
        has_room = self.room(stream_id) >= len(body)
        self.send_head(stream_id, status, [*headers, date_header()], is_last=not has_room)
        if has_room:
            self.send_data(stream_id, body, is_last=True)
        self.flush()
        if not is_whole:
            self._reset(stream_id, _CODES.NO_ERROR)

    def _reset(self, stream_id: int, code: h2.errors.ErrorCodes) -> None:
        try:
            self._core.reset_stream(stream_id, code)
        except h2.exceptions.ProtocolError:
            return  # the client has already reset it
        self.flush()

    def _end(self, code: h2.errors.ErrorCodes, words: bytes = b"") -> None:
        self._core.close_connection(code, words)
        self.flush()
        self.mark_gone()
        self._connection.finish(discard=True)

    def _end_if_done(self) -> None:
        if self._is_stopping and not self._streams and self._connection.is_open:
            self._core.close_connection()
            self.flush()
            self._connection.finish()


class Http2Stream(ServedRequest):
    """A request over HTTP/2."""

    def __init__(self, connection: TcpConnection, http: Http2, stream_id: int, head: RequestHead) -> None:
        super().__init__(connection, head, RequestBody(lambda size: http.acknowledge(stream_id, size)))
        self.id = stream_id
        self.is_received = False
        """Whether the whole request has arrived."""
        self.is_lost = False
        self.has_room = asyncio.Event()
        """Set when flow control may have room for more of the answer."""
        self.unsent_bytes = 0
        self._http = http

    def receive_end(self) -> None:
        """End the body of a fully received request."""
        self.is_received = True
        self.body.end()

    def mark_gone(self) -> None:
        """Cancel the request, because the client has reset it or disconnected."""
        self.is_lost = self.is_received = True
        self.has_room.set()
        self.body.mark_gone()
        self._http.acknowledge(self.id, self.body.drop())

    async def begin(self, status: int, headers: Headers, data: bytes, *, has_more: bool) -> None:
        """Send the head of the answer and its first piece."""
        self._check()
        is_last = not data and not has_more
        self._http.send_head(self.id, status, headers, is_last=is_last)
        if is_last:
            self._http.flush()
        else:
            await self.write(data, has_more=has_more)

    async def write(self, data: bytes, *, has_more: bool) -> None:
        """Send the next piece of the answer, in frames that fit into the flow-control windows."""
        self.unsent_bytes = len(data)
        try:
            while self._write_frame(data[len(data) - self.unsent_bytes :], has_more=has_more):
                await self.connection.drained()
                if self._http.has_others():
                    await asyncio.sleep(0)
                if self._room() <= 0:
                    self.has_room.clear()
                    await self.has_room.wait()
            await self.connection.drained()
        finally:
            self.unsent_bytes = 0

    def finish(self) -> None:
        """Remove the stream."""
        self._http.stream_ended(self)

    def _write_frame(self, data: bytes, *, has_more: bool) -> bool:
        """Send as much as fits into the windows. Return whether some data is left."""
        piece = data[: max(0, self._room())]
        is_last = len(piece) == len(data) and not has_more
        if piece or is_last:
            self._http.send_data(self.id, piece, is_last=is_last)
        self._http.flush()
        self.unsent_bytes = len(data) - len(piece)
        return self.unsent_bytes > 0

    def _room(self) -> int:
        self._check()
        return self._http.room(self.id)

    def _check(self) -> None:
        if self.is_lost or not self.connection.is_open:
            raise ConnectionResetError("the client has cancelled its request or is gone")


def _make_head(fields: Sequence[tuple[bytes, bytes]]) -> RequestHead | None:
    """Return the head of a request in HTTP/1.1 form, or None if a pseudo-header is missing or not ASCII."""
    pseudo = {name: value for name, value in fields if name.startswith(b":")}
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if not method.isascii() or not target.isascii() or not method or not target:
        return None
    host = pseudo.get(b":authority")
    headers = [] if host is None else [(b"host", host)]
    # If both exist, h2 has checked that `host` equals `:authority`.
    headers += [(name, value) for name, value in fields if name not in pseudo and not (host and name == b"host")]
    return RequestHead(method.decode(), target, headers, "2")
