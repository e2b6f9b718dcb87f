"""A WebSocket on one connection (RFC 6455), with the protocol layer of `websockets`.

Input is processed in small pieces, so that a block of tiny frames needs many turns. Each frame without content is paid
from a token bucket. If the bucket is empty, the WebSocket is closed.
"""

import asyncio
import base64
import binascii
import hashlib
import logging
from collections import deque
from collections.abc import Iterator

import msgspec
from websockets.exceptions import InvalidState
from websockets.frames import (
    CloseCode,
    Frame,
    Opcode,
    apply_mask,  # pyright: ignore[reportPrivateImportUsage] -- in C if available, else in Python
)
from websockets.protocol import SERVER, State
from websockets.protocol import Protocol as FrameProtocol

from dragoman.bridge.front.asgi import SEND_FRAMES, Headers, Message
from dragoman.bridge.front.server.request import RequestHead
from dragoman.bridge.front.server.tcp import TcpConnection
from dragoman.wire.framing import too_long

VERSION = b"13"

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16

PIECE_BYTES = 1024
"""Input of one step, at most 170 frames."""

FRAMES_PER_TURN = 64
BYTES_PER_TURN = 64 * 1024

MAX_WAITING_BYTES = 64 * 1024
MAX_WAITING_MESSAGES = 64
"""Messages that are buffered until the application reads them."""

SMALL_BYTES = 1024
"""A smaller fragment costs as much as a frame without content. Clients that split messages use larger pieces."""

TINY_BYTES = 16
"""Every JSON-RPC message is longer than this."""

_PING = b"\x89\x00"
_FINAL_TEXT = 0x81
_MASKED = 0x80
_SHORT_HEAD_BYTES = 6
_MEDIUM = 126
"""In a frame's head, this size says that two bytes with the size follow."""

_LARGE = 0x10000
"""The size of data from which a frame's head has eight bytes for it."""

_CONTROL = frozenset({Opcode.PING, Opcode.PONG})


class _ErrorsOnly(logging.LoggerAdapter[logging.Logger]):
    """Logs only errors, because at other levels the library logs the content of frames."""

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 -- named by the standard library
        return level >= logging.ERROR and super().isEnabledFor(level)


_errors_only = _ErrorsOnly(logging.getLogger("dragoman.bridge.front"))


class _Frames(FrameProtocol):
    """The frames of one WebSocket. The error for a message that is too long names the limit and the fix."""

    def __init__(self, max_message_bytes: int) -> None:
        super().__init__(SERVER, max_size=max_message_bytes, logger=_errors_only)
        self._max_message_bytes = max_message_bytes
        self._unfinished_bytes = 0
        """Received bytes of the frame that is not complete. 0 between two frames."""

    def receive(self, piece: bytes) -> list[Frame]:
        """Return the frames that a piece completes.

        Most requests are one frame in one piece. The general parser needs 15 µs for it, a fifth of the time in which
        the bridge passes on a request, so such a frame is read here.
        """
        is_between = self._unfinished_bytes == 0 and self.current_size is None and self.state is State.OPEN
        if is_between and (frame := _read_text_frame(piece)) is not None and len(frame.data) <= self._max_message_bytes:
            return [frame]
        self.receive_data(piece)
        frames = [event for event in self.events_received() if isinstance(event, Frame)]
        # A client may write the size of a frame in more bytes than it needs. Then this never is 0 again, and the
        # general parser reads all frames.
        self._unfinished_bytes += len(piece) - sum(_least_size(len(frame.data)) for frame in frames)
        return frames

    def fail(self, code: int, reason: str = "") -> None:
        is_too_long = code == CloseCode.MESSAGE_TOO_BIG
        super().fail(code, f"{too_long(self._max_message_bytes)}; send smaller messages" if is_too_long else reason)


class WebSocket:
    """Speaks the WebSocket protocol until either side ends it."""

    unsent_bytes = 0
    is_idle = False

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._core = _Frames(connection.context.max_message_bytes)
        self._input: deque[bytes] = deque()
        self._fragments: list[Frame] = []
        self._messages: deque[Message] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._has_failed = False
        self._end: Message | None = None

    @property
    def is_full(self) -> bool:
        """Whether too many messages wait for the application."""
        return self._waiting_bytes >= MAX_WAITING_BYTES or len(self._messages) >= MAX_WAITING_MESSAGES

    @property
    def has_room(self) -> bool:
        """Whether frames can be sent without a wait."""
        return self._core.state is State.OPEN and self._connection.has_room

    # ── input ───────────────────────────────────────────────────────────────────────────────────────

    def receive(self, data: bytes) -> None:
        """Add received bytes to the input."""
        self._input.append(data)

    def advance(self) -> bool:
        """Process the input, piece by piece."""
        # The library parses a whole piece at once, so pieces are small. A turn stops at the limit of frames or bytes,
        # or when the application has enough unread messages.
        frames = size = 0
        while self._input and not self.is_full:
            if frames >= FRAMES_PER_TURN or size >= BYTES_PER_TURN:
                return True
            piece = self._next_piece()
            size += len(piece)
            for frame in self._core.receive(piece):
                frames += 1
                self._handle(frame)
            self._flush()
            if not self._connection.is_open:
                return False
        return False

    def ping(self) -> bytes | None:
        """Return a frame that the client must answer."""
        return _PING if self._core.state is State.OPEN else None

    def stop(self) -> None:
        """Do nothing: the application closes the WebSocket."""

    def mark_gone(self) -> None:
        """Notify the application that the client has disconnected."""
        self._set_end(CloseCode.ABNORMAL_CLOSURE)

    # ── calls of the application ────────────────────────────────────────────────────────────────────

    async def next_message(self) -> Message:
        """Wait for the next message and return it. At the end return the close code."""
        while not self._messages:
            if self._end is not None:
                return self._end
            self._arrived.clear()
            await self._arrived.wait()
        was_full = self.is_full
        message = self._messages.popleft()
        self._waiting_bytes -= len(message.get("text") or message.get("bytes") or "")
        if was_full and not self.is_full:
            self._connection.advance_soon()
        return message

    async def send(self, message: Message) -> None:
        """Send a message from the application. Raises ConnectionResetError if the client has disconnected."""
        try:
            self._send(message)
        except InvalidState:
            raise ConnectionResetError("the WebSocket is closed") from None
        await self._connection.drained()

    def end(self) -> None:
        """Close the WebSocket, because the application has finished."""
        if self._core.state is State.OPEN:
            self._fail(CloseCode.INTERNAL_ERROR, "")
            self._flush()
        else:
            self._connection.expect_end()

    def _send(self, message: Message) -> None:
        if message["type"] == SEND_FRAMES:
            if self._core.state is not State.OPEN:
                raise InvalidState
            self._connection.write(message["frames"])
            return
        if message["type"] == "websocket.close":
            self._core.send_close(message.get("code") or CloseCode.NORMAL_CLOSURE, message.get("reason") or "")
        elif message.get("bytes") is not None:
            self._core.send_binary(message["bytes"])
        else:
            self._core.send_text(message["text"].encode())
        self._flush()

    # ── frames ──────────────────────────────────────────────────────────────────────────────────────

    def _next_piece(self) -> bytes:
        data = self._input.popleft()
        if len(data) > PIECE_BYTES:
            self._input.appendleft(data[PIECE_BYTES:])
        return data[:PIECE_BYTES]

    def _handle(self, frame: Frame) -> None:
        if self._has_failed:
            return
        if not self._connection.idle_frames.acquire(_cost(frame)):
            self._fail(CloseCode.POLICY_VIOLATION, "too many frames that carry nothing")
        elif frame.opcode not in _CONTROL and frame.opcode is not Opcode.CLOSE:
            self._fragments.append(frame)
            if frame.fin:
                self._complete()

    def _complete(self) -> None:
        fragments, self._fragments = self._fragments, []
        data = b"".join([fragment.data for fragment in fragments])
        message: Message = {"type": "websocket.receive"}
        if fragments[0].opcode is Opcode.BINARY:
            message["bytes"] = data
        else:
            try:
                message["text"] = data.decode()
            except UnicodeDecodeError:
                self._fail(CloseCode.INVALID_DATA, "a text message must be UTF-8")
                return
        self._messages.append(message)
        self._waiting_bytes += len(data)
        self._arrived.set()

    def _fail(self, code: CloseCode, reason: str) -> None:
        """Close the WebSocket with an error, and ignore further frames."""
        self._has_failed = True
        if self._core.state is State.OPEN:
            self._core.fail(code, reason)

    def _flush(self) -> None:
        """Send the queued frames. After the last ones, close the connection."""
        writes = self._core.data_to_send()
        if not writes:
            return
        self._connection.write(b"".join(writes))
        if writes[-1]:
            return
        self._input.clear()
        close = self._core.close_rcvd or self._core.close_sent
        self._set_end(CloseCode.ABNORMAL_CLOSURE if close is None else close.code)
        self._connection.finish(discard=self._core.close_rcvd is None)

    def _set_end(self, code: int) -> None:
        if self._end is None:
            self._end = {"type": "websocket.disconnect", "code": int(code)}
            self._arrived.set()


def _least_size(data_bytes: int) -> int:
    """Return the smallest size of a masked frame with so much data (RFC 6455, 5.2)."""
    return data_bytes + (6 if data_bytes < _MEDIUM else 8 if data_bytes < _LARGE else 14)


def _read_text_frame(piece: bytes) -> Frame | None:
    """Return the frame if a piece is exactly one unfragmented, masked text frame of up to 64 KiB, or None."""
    if len(piece) < _SHORT_HEAD_BYTES or piece[0] != _FINAL_TEXT:
        return None
    mask_at, size = 2, piece[1] - _MASKED
    if size == _MEDIUM:
        mask_at, size = 4, int.from_bytes(piece[2:4])
    elif size > _MEDIUM:
        return None  # eight bytes with the size follow
    data_at = mask_at + 4
    if not 0 <= size == len(piece) - data_at:
        return None
    return Frame(Opcode.TEXT, apply_mask(piece[data_at:], piece[mask_at:data_at]))


def _cost(frame: Frame) -> int:
    """Return the cost of a frame: 1 for control frames, small fragments and messages too short for JSON-RPC."""
    if frame.opcode in _CONTROL:
        return 1
    least = TINY_BYTES if frame.fin else SMALL_BYTES
    return int(len(frame.data) < least and frame.opcode is not Opcode.CLOSE)


# ── the handshake (RFC 6455, 4.2) ─────────────────────────────────────────────────────────────────


class Handshake(msgspec.Struct, frozen=True):
    """The parts of a WebSocket request that are needed for its answer."""

    key: bytes
    subprotocols: list[str]

    def accept(self, subprotocol: str | None, headers: Headers) -> Headers:
        """Return the headers that accept the WebSocket, without extensions."""
        proof = base64.b64encode(hashlib.sha1(self.key + _GUID, usedforsecurity=False).digest())
        chosen = [] if subprotocol is None else [(b"sec-websocket-protocol", subprotocol.encode())]
        switch = [(b"upgrade", b"websocket"), (b"connection", b"upgrade"), (b"sec-websocket-accept", proof)]
        return [*switch, *chosen, *headers]


def is_upgrade(head: RequestHead) -> bool:
    """Return whether a request asks for a WebSocket. A request with a body does not."""
    names = {name for name, _ in head.headers}
    if head.method != "GET" or head.http_version != "1.1" or names & {b"content-length", b"transfer-encoding"}:
        return False
    return b"websocket" in _tokens(head, b"upgrade") and b"upgrade" in _tokens(head, b"connection")


def read_handshake(head: RequestHead) -> Handshake | str:
    """Parse a WebSocket request, or return a description of the problem."""
    keys = [value for name, value in head.headers if name == b"sec-websocket-key"]
    if len(keys) != 1 or not _is_key(keys[0]):
        return "Sec-WebSocket-Key is missing or broken; expected 16 bytes in base64"
    if list(_tokens(head, b"sec-websocket-version")) != [VERSION]:
        return "Sec-WebSocket-Version must be 13"
    subprotocols = [one.decode("latin-1") for one in _values(head, b"sec-websocket-protocol")]
    return Handshake(keys[0], subprotocols)


def _is_key(value: bytes) -> bool:
    try:
        return len(base64.b64decode(value, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False


def _values(head: RequestHead, wanted: bytes) -> Iterator[bytes]:
    for name, value in head.headers:
        if name == wanted:
            yield from (one.strip() for one in value.split(b","))


def _tokens(head: RequestHead, wanted: bytes) -> Iterator[bytes]:
    return (one.lower() for one in _values(head, wanted))
