"""Bytes in, lines out: newline-delimited framing without any I/O.

A line that grows over the limit is given up at once: one `Oversized` takes its place, what follows
up to the next newline is dropped as it comes, and memory stays bounded however long it gets.
"""

import msgspec

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest message on a pipe: images and files travel inside messages, base64 and all."""


class Oversized(msgspec.Struct, frozen=True):
    """Stands where a line was longer than the limit."""

    max_bytes: int


class LineSplitter:
    """Cuts a stream of bytes into lines; blank lines are dropped."""

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._held_bytes = 0
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and give the lines that they complete."""
        lines: list[bytes | Oversized] = []
        first, *rest = data.split(b"\n")
        if not rest:
            self._hold(first, lines)
            return lines
        if self._skipping:
            self._skipping = False
        else:
            self._hold(first, lines)
            self._release(lines)
        last = rest.pop()
        if len(data) > self._max_bytes:
            lines += [self._checked(line) for line in rest if line.strip()]
        else:
            lines += [line for line in rest if line and not line.isspace()]
        if last:
            self._hold(last, lines)
        return lines

    def finish(self) -> list[bytes | Oversized]:
        """Give what was left without a newline when the stream ended."""
        lines: list[bytes | Oversized] = []
        self._release(lines)
        return lines

    def _hold(self, part: bytes, lines: list[bytes | Oversized]) -> None:
        if self._skipping:
            return
        self._held_bytes += len(part)
        if self._held_bytes > self._max_bytes:
            self._forget()
            self._skipping = True
            lines.append(Oversized(self._max_bytes))
        else:
            self._parts.append(part)

    def _release(self, lines: list[bytes | Oversized]) -> None:
        if self._skipping:
            self._skipping = False
            return
        line = b"".join(self._parts)
        self._forget()
        if line.strip():
            lines.append(line)

    def _forget(self) -> None:
        self._parts = []
        self._held_bytes = 0

    def _checked(self, line: bytes) -> bytes | Oversized:
        return line if len(line) <= self._max_bytes else Oversized(self._max_bytes)
