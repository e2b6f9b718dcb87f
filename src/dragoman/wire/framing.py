"""Bytes in, lines out: newline-delimited framing without any I/O.

A line that grows over the limit is dropped as it comes, so that memory stays bounded. When it ends, one `Oversized`
takes its place, with its two ends: the id of a message is short and near its beginning, or the very last thing in it,
so that the answer, or the refusal, can name it. A line that does not end is reported all the same, at `GIVE_UP_FACTOR`
times the limit.
"""

from typing import Self

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest message on a pipe: images and files travel inside messages, base64 and all."""

EDGE_BYTES = 4096
"""Kept of each end of a line that is too long: far more than a method and an id have."""

GIVE_UP_FACTOR = 16
"""A line so many times as long as the limit is not waited for any longer: a gibibyte, by default."""


class Oversized(msgspec.Struct, frozen=True):
    """Stands where a line was longer than the limit, with how it began and, if it has ended, how it ended."""

    max_bytes: int
    head: bytes = b""
    tail: bytes = b""

    @classmethod
    def of(cls, line: bytes, max_bytes: int) -> Self:
        """Make the object in place of a line."""
        has_end = len(line) <= _give_up_bytes(max_bytes)
        return cls(max_bytes, line[:EDGE_BYTES], line[-EDGE_BYTES:] if has_end else b"")


def _give_up_bytes(max_bytes: int) -> int:
    return max(GIVE_UP_FACTOR * max_bytes, EDGE_BYTES)


class LineSplitter:
    """Cuts a stream of bytes into lines; blank lines are dropped."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._skipped: _Skipped | None = None

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and return the lines that they complete."""
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
        """Return the rest without a newline at the end of the stream."""
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
        if self._skipped.size > _give_up_bytes(self._max_bytes) and not self._skipped.is_told:
            self._skipped.is_told = True
            lines.append(Oversized(self._max_bytes, self._skipped.head))

    def _release(self, lines: list[bytes | Oversized]) -> None:
        skipped, self._skipped = self._skipped, None
        if skipped is not None:
            if not skipped.is_told:
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
    """Cuts a stream of bytes into blocks of whole lines, each line with its newline; for receivers of many lines."""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and return the lines that they complete, in as few blocks as possible."""
        end = data.rfind(b"\n") + 1
        if end == 0 or len(data) > self._max_bytes:
            return [line + b"\n" if isinstance(line, bytes) else line for line in super().feed(data)]
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
        """Return the rest without a newline at the end of the stream, with one."""
        return [line + b"\n" if isinstance(line, bytes) else line for line in super().finish()]


class _Skipped:
    """The known parts of a line that is being dropped."""

    def __init__(self, parts: list[bytes]) -> None:
        self.size = 0
        self.head = b""
        self.tail = b""
        self.is_told = False
        for part in parts:
            self.add(part)

    def add(self, part: bytes) -> None:
        """Take the next part of it."""
        self.size += len(part)
        if len(self.head) < EDGE_BYTES:
            self.head += part[: EDGE_BYTES - len(self.head)]
        self.tail = (self.tail + part[-EDGE_BYTES:])[-EDGE_BYTES:]
