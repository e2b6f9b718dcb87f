"""Splits bytes into lines: newline-delimited framing without I/O.

A line over the limit is dropped while it arrives, so that memory stays bounded. When it ends, an `Oversized` object
takes its place. The object keeps both ends of the line, because the ID of a message is near its beginning or at its
very end. With the ID, the error can answer the right request. A line that does not end is reported when it exceeds
`GIVE_UP_FACTOR` times the limit.
"""

from typing import Self

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024
"""The longest message on every transport, in both directions. Images and files travel inside messages, in base64."""

MAX_FRAME_BYTES = MAX_LINE_BYTES + 1024 * 1024
"""The longest frame or event that we read from the network: a message plus the marks that a bridge adds to it."""

EDGE_BYTES = 4096
"""The bytes kept of each end of a line that is too long. A method and an ID are far shorter."""

GIVE_UP_FACTOR = 16
"""How many times the limit a line may reach before it is reported without its end: 1 GiB by default."""


class Oversized(msgspec.Struct, frozen=True):
    """Replaces a line over the limit. Holds the beginning of the line, and its end if the line has ended."""

    max_bytes: int
    head: bytes = b""
    tail: bytes = b""

    @classmethod
    def of(cls, line: bytes, max_bytes: int) -> Self:
        """Build the replacement for a complete line."""
        has_end = len(line) <= _max_skipped_bytes(max_bytes)
        return cls(max_bytes, line[:EDGE_BYTES], line[-EDGE_BYTES:] if has_end else b"")


def too_long(max_bytes: int = MAX_LINE_BYTES) -> str:
    """Return the error text for a message that is too long, the same on every transport."""
    return f"the message is longer than the limit of {max_bytes} bytes"


def _max_skipped_bytes(max_bytes: int) -> int:
    return max(GIVE_UP_FACTOR * max_bytes, EDGE_BYTES)


class LineSplitter:
    """Splits a stream of bytes into lines and drops blank lines."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._skipped: _Skipped | None = None

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Add bytes and return the lines that they complete."""
        lines: list[bytes | Oversized] = []
        whole = data.split(b"\n")
        last = whole.pop()
        if whole and (self._held_bytes or self._skipped is not None):
            self._hold(whole.pop(0), lines)
            self._release(lines)
        if len(data) > self._max_bytes:
            lines += [self._checked(line) for line in whole if line.strip()]
        else:
            lines += [line for line in whole if line and not line.isspace()]
        if last:
            self._hold(last, lines)
        return lines

    def finish(self) -> list[bytes | Oversized]:
        """Return the last line if the stream ended without a newline."""
        lines: list[bytes | Oversized] = []
        self._release(lines)
        return lines

    def _hold(self, part: bytes, lines: list[bytes | Oversized]) -> None:
        if self._skipped is not None:
            self._skipped.add(part)
        elif self._held_bytes + len(part) <= self._max_bytes:
            self._parts.append(part)
            self._held_bytes += len(part)
            return
        else:
            self._skipped = _Skipped([*self._parts, part])
            self._forget()
        if self._skipped.size > _max_skipped_bytes(self._max_bytes) and not self._skipped.is_reported:
            self._skipped.is_reported = True
            lines.append(Oversized(self._max_bytes, self._skipped.head))

    def _release(self, lines: list[bytes | Oversized]) -> None:
        skipped, self._skipped = self._skipped, None
        if skipped is not None:
            if not skipped.is_reported:
                lines.append(Oversized(self._max_bytes, skipped.head, skipped.tail))
            return
        line = b"".join(self._parts)
        self._forget()
        if line.strip():
            lines.append(line)

    def _forget(self) -> None:
        self._parts = []
        self._held_bytes = 0

    def _checked(self, line: bytes) -> bytes | Oversized:
        return line if len(line) <= self._max_bytes else Oversized.of(line, self._max_bytes)


class BlockSplitter(LineSplitter):
    """Splits a stream of bytes into blocks of whole lines with newlines, for receivers that handle many at once."""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Add bytes and return the lines that they complete, in as few blocks as possible."""
        end = data.rfind(b"\n") + 1
        if end == 0 or len(data) > self._max_bytes:
            return [line + b"\n" if isinstance(line, bytes) else line for line in super().feed(data)]
        # Complete a held line first. Then pass on all whole lines of `data` as one block, and hold the rest.
        blocks: list[bytes | Oversized] = []
        begin = 0
        if self._held_bytes or self._skipped is not None:
            begin = data.index(b"\n") + 1
            self._hold(data[: begin - 1], blocks)
            self._release(blocks)
        block = data[begin:end]
        if blocks and isinstance(first := blocks[-1], bytes):
            blocks[-1] = b"%b\n%b" % (first, block)
        elif block:
            blocks.append(block)
        if end < len(data):
            self._hold(data[end:], blocks)
        return blocks

    def finish(self) -> list[bytes | Oversized]:
        """Return the last line, with a newline added, if the stream ended without one."""
        return [line + b"\n" if isinstance(line, bytes) else line for line in super().finish()]


class _Skipped:
    """The parts that are kept of a line that is being dropped."""

    def __init__(self, parts: list[bytes]) -> None:
        self.size = 0
        self.head = b""
        self.tail = b""
        self.is_reported = False
        for part in parts:
            self.add(part)

    def add(self, part: bytes) -> None:
        """Add the next part of the line."""
        self.size += len(part)
        if len(self.head) < EDGE_BYTES:
            self.head += part[: EDGE_BYTES - len(self.head)]
        self.tail = (self.tail + part[-EDGE_BYTES:])[-EDGE_BYTES:]
