"""The frames of HTTP/2 as they arrive, before h2 sees them: what kind each is, and what it is charged.

h2 makes no event of some frames (a reset of a stream that is gone, the continuation of headers), so what a flood costs
cannot be known from its events. Heads of frames are read here (RFC 9113, 4.1), and nothing else of them:

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
"""A piece of a body with less than this is one of too many, unless it is the last."""

RESET_COST = 5
"""A request that is taken back before it was answered: the application has begun with it by then."""

_HEAD = Struct("!HBBBL").unpack
_STREAM_BITS = 0x7FFFFFFF


class FrameHead(NamedTuple):
    """What the first nine bytes of a frame say."""

    kind: int
    flags: int
    length: int
    stream_id: int


class FrameScanner:
    """Finds the heads of frames in a stream of bytes, wherever that is cut."""

    def __init__(self, skip_bytes: int) -> None:
        self._skip_bytes = skip_bytes
        self._head = b""

    def next(self, data: bytes, at: int) -> tuple[FrameHead | None, int]:
        """Go on at a place; give the next head, if there is one, and the place where its frame ends, or the data."""
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
    """Say what a frame is charged; `is_awaited` tells whether a stream is, or will be, a request without an answer."""
    match head.kind:
        case 0x1:
            return 0  # the application and the guard see to requests
        case 0x0:
            is_part = head.length >= SMALL_DATA_BYTES or bool(head.flags & END_STREAM)
            return 0 if is_part else 1
        case 0x3 if is_awaited(head.stream_id):
            return RESET_COST
        case _:
            return 1
