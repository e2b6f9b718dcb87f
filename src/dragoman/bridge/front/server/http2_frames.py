"""The heads of HTTP/2 frames, read before h2 sees the frames, and the cost of each frame.

h2 creates no event for some frames, such as CONTINUATION or the reset of a removed stream. Its events therefore do not
reveal a flood. This module reads only the heads of frames (RFC 9113, 4.1):

    length (24 bits)  type (8)  flags (8)  stream (31, after one reserved bit)
"""

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

DATA = 0x0
HEADERS = 0x1
END_STREAM = 0x1

HEAD_BYTES = 9
SMALL_DATA_BYTES = 64
"""A smaller piece of a body costs as much as a frame without content, unless it is the last piece."""

RESET_COST = 5
"""The cost of cancelling an unanswered request, which has already started the application."""

_HEAD = Struct("!HBBBL").unpack
_STREAM_BITS = 0x7FFFFFFF


class FrameHead(NamedTuple):
    """The first nine bytes of a frame."""

    kind: int
    flags: int
    length: int
    stream_id: int


class FrameScanner:
    """Finds the heads of frames in a byte stream that arrives in arbitrary pieces."""

    def __init__(self, skip_bytes: int) -> None:
        self._skip_bytes = skip_bytes
        self._head = b""

    def next(self, data: bytes, at: int) -> tuple[FrameHead | None, int]:
        """Continue at an offset. Return the next head if it is complete, and the offset after its frame or the data."""
        # A frame is a head and a payload, and `data` can end inside either. `_skip_bytes` is the number of missing
        # payload bytes, and `_head` is the part of a head that has arrived.
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
    """Return the cost of a frame. `is_awaited` returns whether a stream is, or will be, an unanswered request."""
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
