"""How the tap tells its scribe what passed: a header of 13 bytes, then the bytes as they passed.

The header has the kind, the length of what follows, and the time in nanoseconds since 1970.
"""

import struct
import time
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

_HEADER = struct.Struct("<BIQ")
HEADER_BYTES = _HEADER.size


class Kind(IntEnum):
    """What a frame tells."""

    CLIENT = 1
    """Bytes of the client."""
    AGENT = 2
    """Bytes of the agent."""
    EVENT = 3
    """What became of the agent's process, in words."""
    SKIPPED = 4
    """How many bytes passed before this that the scribe is not told of, in digits."""


class Frame(NamedTuple):
    """One thing that passed."""

    kind: int
    time_ns: int
    data: bytes


def header(kind: int, length: int) -> bytes:
    """Return what precedes so many bytes of a kind that pass now."""
    return _HEADER.pack(kind, length, time.time_ns())


class FrameReader:
    """Cuts what was written back into frames."""

    def __init__(self) -> None:
        self._held = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take the next bytes and give the frames that they complete."""
        self._held += data
        start = 0
        while len(self._held) - start >= HEADER_BYTES:
            kind, length, time_ns = _HEADER.unpack_from(self._held, start)
            end = start + HEADER_BYTES + length
            if end > len(self._held):
                break
            yield Frame(kind, time_ns, bytes(memoryview(self._held)[start + HEADER_BYTES : end]))
            start = end
        del self._held[:start]
