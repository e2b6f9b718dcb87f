"""HTTP/2 on one connection (RFC 9113): many requests side by side, each no faster than its reader.

Nothing of an answer is kept here: the application waits in `send` until flow control, and TCP, have taken the piece
in hand. A body counts as received when the application has taken it, so a client cannot send more than the window.
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
"""Frames in one turn; a request counts for several, because the application begins with it at once."""

WORK_OF_A_REQUEST = 8
WORK_BYTES = 1024
"""So many bytes of a frame count like another frame."""


WINDOW_BYTES = 256 * 1024
"""What a client may send before the application has taken it: 16 MiB in seven seconds, 100 ms away."""

UPDATES_OF_A_FRAME = 2
"""Window updates that a frame of ours calls for: of its stream, and of the connection."""

HEADER_FACTOR = 2
"""Headers this much longer than the limit are still read, so that the request can be refused in words."""

PREFACE_BYTES = 24

_PING = b"\x00\x00\x08\x06\x00\x00\x00\x00\x00dragoman"
_FIELD_OVERHEAD_BYTES = 32
"""Beside name and value, as RFC 9113 counts them in 6.5.2."""

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
        """Whether no request is under way; control frames are no request."""
        return not self._streams

    @property
    def is_full(self) -> bool:
        """Say no: flow control holds a client back that sends more than the application takes."""
        return False

    @property
    def unsent_bytes(self) -> int:
        """What the application has handed over and flow control holds back."""
        return sum(stream.unsent_bytes for stream in self._streams.values())

    # ── what arrives ────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> None:
        """Take bytes that arrived."""
        self._input += data

    def advance(self) -> bool:
        """Look at as many frames as fit into one turn."""
        work = at = 0
        while at < len(self._input) and work < WORK_PER_TURN:
            head, at = self._scanner.next(self._input, at)
            if head is None:
                continue
            work += 1 + head.length // WORK_BYTES + (WORK_OF_A_REQUEST if head.kind == HEADERS else 0)
            if not self._connection.idle_frames.take(self._cost(head)):
                self._end(_CODES.ENHANCE_YOUR_CALM, b"too many frames that carry nothing")
                return False
        data, self._input = self._input[:at], self._input[at:]
        try:
            for event in self._core.receive_data(data):
                self._take(event)
        except h2.exceptions.ProtocolError:
            self.flush()  # h2 has said why
            self.lose()
            self._connection.finish(discard=True)
            return False
        self.flush()
        self._end_if_done()
        return bool(self._input) and self._connection.is_open

    def ping(self) -> bytes | None:
        """Return a frame that the other side must answer."""
        return _PING

    def stop(self) -> None:
        """Take no new request, and end when those under way are answered."""
        self._is_stopping = True
        self._end_if_done()

    def lose(self) -> None:
        """Tell the application that the other side is gone."""
        for stream in self._streams.values():
            stream.lose()

    # ── what streams use ────────────────────────────────────────────────────────────────────────────

    def room(self, stream_id: int) -> int:
        """Say how many bytes of an answer can be sent in one frame now."""
        window = self._core.local_flow_control_window(stream_id)
        return min(window, self._core.max_outbound_frame_size)

    def send_head(self, stream_id: int, status: int, headers: Headers, *, is_last: bool) -> None:
        """Send the head of an answer, with the next flush."""
        self._core.send_headers(stream_id, [(b":status", b"%d" % status), *headers], end_stream=is_last)

    def send_data(self, stream_id: int, data: bytes, *, is_last: bool) -> None:
        """Send a piece of an answer for which there is room, with the next flush."""
        self._core.send_data(stream_id, data, end_stream=is_last)
        self._connection.idle_frames.add(UPDATES_OF_A_FRAME)

    def flush(self) -> None:
        """Write what there is to send."""
        self._connection.write(self._core.data_to_send())

    def has_others(self) -> bool:
        """Tell whether one stream should leave room for another."""
        return len(self._streams) > 1

    def took(self, stream_id: int, size: int) -> None:
        """Take note that some of a body is not held any more."""
        if self._connection.is_open and size:
            self._core.acknowledge_received_data(size, stream_id)
            self.flush()

    def stream_ended(self, stream: "Http2Stream") -> None:
        """Take note that the application is done with a request."""
        self._streams.pop(stream.id, None)
        self._connection.note_use()
        if not self._connection.is_open:
            return
        self.took(stream.id, stream.body.drop())
        if not stream.is_complete:
            self._reset(stream.id, _CODES.CANCEL)  # half an answer must not look like a whole
        elif not stream.is_received:
            self._reset(stream.id, _CODES.NO_ERROR)  # the rest of its body is of no use
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
            return 1  # of a request that is over
        return cost_of(head, self._is_awaited)

    def _is_awaited(self, stream_id: int) -> bool:
        stream = self._streams.get(stream_id)
        return stream_id > self._last_id if stream is None else not stream.is_answered

    def _take(self, event: h2.events.Event) -> None:
        match event:
            case h2.events.RequestReceived():
                self._take_request(event.stream_id, event.headers, is_whole=event.stream_ended is not None)
            case h2.events.DataReceived():
                self._take_data(event.stream_id, event.data, event.flow_controlled_length)
            case h2.events.StreamEnded() if event.stream_id in self._streams:
                self._streams[event.stream_id].receive_end()
            case h2.events.StreamReset() if event.stream_id in self._streams:
                self._streams[event.stream_id].lose()
            case h2.events.WindowUpdated() if event.stream_id in self._streams:
                self._streams[event.stream_id].has_room.set()
            case h2.events.WindowUpdated() | h2.events.RemoteSettingsChanged():
                for stream in self._streams.values():
                    stream.has_room.set()
            case h2.events.ConnectionTerminated():
                self._connection.abort()  # h2 sends nothing after it, and whoever says so has left
            case _:
                pass

    def _take_request(self, stream_id: int, fields: "Sequence[tuple[bytes, bytes]]", *, is_whole: bool) -> None:
        self._last_id = stream_id
        head = _make_head(fields)
        size = sum(len(name) + len(value) + _FIELD_OVERHEAD_BYTES for name, value in fields)
        limit = self._limits.max_header_bytes
        if size > limit:
            reason = f"the headers of the request have more than {limit} bytes, the limit; send fewer, or shorter"
            self._refuse(stream_id, 431, reason, is_whole=is_whole)
        elif head is None:
            reason = "a request needs :method and :path, and its path has to be ASCII"
            self._refuse(stream_id, 400, reason, is_whole=is_whole)
        elif self._is_stopping or len(self._streams) >= self._limits.max_http2_streams:
            self._reset(stream_id, _CODES.REFUSED_STREAM)  # those that were taken back and still run count as well
        else:
            stream = self._streams[stream_id] = Http2Stream(self._connection, self, stream_id, head)
            self._connection.context.spawn(stream.run(make_scope("http", head, self._connection)))

    def _take_data(self, stream_id: int, data: bytes, flow_bytes: int) -> None:
        stream = self._streams.get(stream_id)
        if stream is not None and not stream.is_lost:
            stream.body.put(data)
            flow_bytes -= len(data)
        self.took(stream_id, flow_bytes)  # padding, or what nobody wants

    def _refuse(self, stream_id: int, status: int, reason: str, *, is_whole: bool) -> None:
        """Answer a request that no application sees."""
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
            return  # the other side has done so already
        self.flush()

    def _end(self, code: h2.errors.ErrorCodes, words: bytes = b"") -> None:
        self._core.close_connection(code, words)
        self.flush()
        self.lose()
        self._connection.finish(discard=True)

    def _end_if_done(self) -> None:
        if self._is_stopping and not self._streams and self._connection.is_open:
            self._core.close_connection()
            self.flush()
            self._connection.finish()


class Http2Stream(ServedRequest):
    """A request over HTTP/2."""

    def __init__(self, connection: TcpConnection, http: Http2, stream_id: int, head: RequestHead) -> None:
        super().__init__(connection, head, RequestBody(lambda size: http.took(stream_id, size)))
        self.id = stream_id
        self.is_received = False
        """Whether the whole request is here."""
        self.is_lost = False
        self.has_room = asyncio.Event()
        """Set when there may be room for more of the answer."""
        self.unsent_bytes = 0
        self._http = http

    def receive_end(self) -> None:
        """Take note that the whole request is here."""
        self.is_received = True
        self.body.end()

    def lose(self) -> None:
        """Take note that the client has taken the request back, or is gone."""
        self.is_lost = self.is_received = True
        self.has_room.set()
        self.body.lose()
        self._http.took(self.id, self.body.drop())

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
        """Send the next piece of the answer, frame by frame as there is room."""
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
        """Let go of the stream."""
        self._http.stream_ended(self)

    def _write_frame(self, data: bytes, *, has_more: bool) -> bool:
        """Send as much as there is room for; tells whether some is left."""
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
            raise ConnectionResetError("the other side has taken its request back, or is gone")


def _make_head(fields: Sequence[tuple[bytes, bytes]]) -> RequestHead | None:
    """Say what is asked, as HTTP/1.1 would have it; None if that cannot be said."""
    pseudo = {name: value for name, value in fields if name.startswith(b":")}
    method, target = pseudo.get(b":method", b""), pseudo.get(b":path", b"")
    if not method.isascii() or not target.isascii() or not method or not target:
        return None
    host = pseudo.get(b":authority")
    headers = [] if host is None else [(b"host", host)]
    # h2 has seen to it that `host` says the same where both are there.
    headers += [(name, value) for name, value in fields if name not in pseudo and not (host and name == b"host")]
    return RequestHead(method.decode(), target, headers, "2")
