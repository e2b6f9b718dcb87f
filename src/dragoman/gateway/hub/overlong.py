"""A line of the agent that is longer than the limit: it is dropped, and its two ends say what it was.

Somebody waits for an answer, also for one that is too long. Ids and methods are short and stand near the beginning of a
message, or at its very end; what is between is never kept.
"""

import re
from typing import Literal

import msgspec

from dragoman.wire import LineSplitter, Oversized, StdioTransport

EDGE_BYTES = 4096
"""Kept of each end: far more than a method and an id have."""

Kind = Literal["request", "response", "notification", "unknown"]

_KINDS: dict[bytes, Kind] = {
    b'"method"': "notification",
    b'"params"': "notification",
    b'"result"': "response",
    b'"error"': "response",
}
_STRING = rb'"(?:[^"\\]|\\.)*+"'
_SCALAR = rb"(?:%b|-?[0-9][0-9.eE+-]*|true|false|null)" % _STRING
_KEY = re.compile(rb"\s*(%b)\s*:\s*" % _STRING, re.DOTALL)
_MEMBER = re.compile(rb"(%b)\s*," % _SCALAR, re.DOTALL)
_LAST_ID = re.compile(rb',\s*"id"\s*:\s*(%b)\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z' % _SCALAR, re.DOTALL)


class Overlong(Oversized, frozen=True):
    """Stands where a line was longer than the limit, with how it began and how it ended."""

    head: bytes = b""
    tail: bytes = b""


class Glimpse(msgspec.Struct, frozen=True):
    """What the ends of a message say of it."""

    kind: Kind
    id: bytes | None = None


class EdgeSplitter(LineSplitter):
    """Cuts the agent's output into lines; one that is too long is told of when it ends."""

    _head = b""
    _tail = b""

    def feed(self, data: bytes) -> list[bytes | Oversized]:
        """Take the next bytes and give the lines that they complete."""
        if not self._skipping and self._held_bytes + len(data) <= self._max_bytes:
            return super().feed(data)
        lines: list[bytes | Oversized] = []
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._hold(end, lines)
            self._release(lines)
        self._hold(rest, lines)
        return lines

    def _hold(self, part: bytes, lines: list[bytes | Oversized]) -> None:
        if not self._skipping and self._held_bytes + len(part) <= self._max_bytes:
            super()._hold(part, lines)
            return
        if not self._skipping:
            self._head = _beginning([*self._parts, part])
            self._forget()
            self._skipping = True
        self._tail = (self._tail + part[-EDGE_BYTES:])[-EDGE_BYTES:]

    def _release(self, lines: list[bytes | Oversized]) -> None:
        if self._skipping:
            lines.append(Overlong(self._max_bytes, self._head, self._tail))
            self._head = self._tail = b""
        super()._release(lines)


class AgentTransport(StdioTransport):
    """Lines of an agent, of which also those are told of that are too long to pass."""

    def __init__(self, read_fd: int, write_fd: int, *, max_line_bytes: int) -> None:
        super().__init__(read_fd, write_fd)
        self._splitter = EdgeSplitter(max_line_bytes)


def glimpse(line: Overlong) -> Glimpse:
    """Say what a line was, as far as its ends tell."""
    kind: Kind = "unknown"
    found: bytes | None = None
    at = 1 if line.head.lstrip().startswith(b"{") else len(line.head)
    at += len(line.head) - len(line.head.lstrip())
    while key := _KEY.match(line.head, at):
        kind = _KINDS.get(key[1], kind)
        value = _MEMBER.match(line.head, key.end())
        if value is None:
            break  # the long one: what is behind it, if anything, is in the tail
        if key[1] == b'"id"':
            found = value[1]
        at = value.end()
    if found is None and (last := _LAST_ID.search(line.tail)):
        found = last[1]
    if kind == "notification" and found is not None:
        kind = "request"
    return Glimpse(kind, found)


def _beginning(parts: list[bytes]) -> bytes:
    head = b""
    for part in parts:
        head += part[: EDGE_BYTES - len(head)]
        if len(head) == EDGE_BYTES:
            break
    return head
