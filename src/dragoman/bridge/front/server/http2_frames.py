"""The heads of HTTP/2 frames, read before h2 sees the frames, and the cost of each frame.

h2 makes no event for some frames (a reset of a stream that is gone, the continuation of headers), so its events do not
show the cost of a flood. Only the heads of frames are read here (RFC 9113, 4.1):

    length (24 bits)  type (8)  flags (8)  stream (31, after one reserved bit)
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

DATA = 0x0
HEADERS = 0x1
RST_STREAM = 0x3
CONTINUATION = 0x9
END_STREAM = 0x1

HEAD_BYTES = 9
SMALL_DATA_BYTES = 64
"""A smaller piece of a body costs like a frame without content, unless it is the last."""

RESET_COST = 5
"""The cost of a request that is cancelled before its answer, because it has started the application."""

_HEAD = Struct("!HBBBL").unpack
_STREAM_BITS = 0x7FFFFFFF


class FrameHead(NamedTuple):
    """The first nine bytes of a frame."""

    kind: int
    flags: int
    length: int
    stream_id: int


class FrameScanner:
    """Finds the heads of frames in a stream of bytes that is cut at any place."""

    def __init__(self, skip_bytes: int) -> None:
        self._skip_bytes = skip_bytes
        self._head = b""

    def next(self, data: bytes, at: int) -> tuple[FrameHead | None, int]:
        """Read on from an offset; returns the next head, if it is whole, and the end of its frame or of the data."""
        # A frame is a head and a payload, and `data` can end inside either. `_skip_bytes` is the payload that is still
        # to come, `_head` the part of a head that is here.
        if self._skip_bytes:
            step = min(self._skip_bytes, len(data) - at)
            self._skip_bytes -= step
            at += step
        part = data[at : at + HEAD_BYTES - len(self._head)]
        self._head += part
        at += len(part)
        if len(self._head) < HEAD_BYTES:
            return None, at
        high, low, kind, flags, stream_id = _HEAD(self._head)
        self._head = b""
        length = high << 8 | low
        step = min(length, len(data) - at)
        self._skip_bytes = length - step
        return FrameHead(kind, flags, length, stream_id & _STREAM_BITS), at + step


def cost_of(head: FrameHead, is_awaited: Callable[[int], bool]) -> int:
    """Return the cost of a frame; `is_awaited` tells whether a stream is, or will be, a request without an answer."""
    match head.kind:
        case 0x1:
            return 0  # the guard limits requests
        case 0x0:
            is_part = head.length >= SMALL_DATA_BYTES or bool(head.flags & END_STREAM)
            return 0 if is_part else 1
        case 0x3 if is_awaited(head.stream_id):
            return RESET_COST
        case _:
            return 1
