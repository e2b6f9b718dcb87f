"""The end of a journal in memory, from which all viewers that keep up are served the same bytes.

A viewer that knows our extensions gets a copy of each message with its cursor, which is made once for all of them.
Copies count like the messages themselves, and can be made again at any time: when there are too many, all are dropped.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import cast

import msgspec

from dragoman.bridge.envelope import add_cursor

_OVERHEAD_BYTES = 160
"""Memory of a message beside its own bytes."""

_COPY_OVERHEAD_BYTES = 96
"""Memory of a copy with a cursor beside its own bytes."""


class StreamEvent(msgspec.Struct, frozen=True, gc=False):
    """One JSON-RPC message for a viewer, with its place in the stream."""

    data: bytes
    """One line of JSON, without a newline."""
    id: bytes | None = None
    """The `Last-Event-ID` by which a viewer over HTTP goes on from here; None where there is no such place."""


class TailBudget:
    """The memory of all tails together; those not written for longest are dropped first."""

    def __init__(self, tail_bytes: int, all_bytes: int) -> None:
        self.tail_bytes = tail_bytes
        self._all_bytes = all_bytes
        self._total = 0
        self._tails: dict[JournalTail, None] = {}

    def grew(self, tail: "JournalTail", size: int) -> None:
        """Count bytes that a tail has taken."""
        self._total += size
        self._tails.pop(tail, None)
        self._tails[tail] = None
        if self._total > self._all_bytes:
            self._drop_oldest(tail)

    def shrank(self, tail: "JournalTail", size: int, *, empty: bool) -> None:
        """Count bytes that a tail has freed."""
        self._total -= size
        if empty:
            self._tails.pop(tail, None)

    def _drop_oldest(self, but: "JournalTail") -> None:
        for tail in [tail for tail in self._tails if tail is not but and not tail.is_held]:
            if self._total <= self._all_bytes:
                return
            tail.drop()


class JournalTail:
    """The last messages of a journal, by their sequence numbers."""

    def __init__(self, budget: TailBudget, epoch: bytes, start: int) -> None:
        self.start = start
        """Every message after this one is in here."""
        self.is_held = False
        """Whether some of it is nowhere else, because the disk is full: then nothing is dropped."""
        self._budget = budget
        self._epoch = epoch
        # Parallel lists, by message: bisect finds a sequence number, or the last message that fits into a size.
        self._seqs: list[int] = []
        self._events: list[StreamEvent] = []
        self._times: list[int] = []
        self._copies: list[StreamEvent | None] = []
        self._copied_bytes = 0
        self._ends: list[int] = []
        """The size of all messages of the journal up to the end of each."""
        self._dropped = 0
        """The size of all messages that were dropped: what `_ends` counts from."""

    def extend(self, first_seq: int, lines: Sequence[bytes], time_ms: int) -> None:
        """Take messages that follow each other."""
        before = at = self._ends[-1] if self._ends else self._dropped
        self._seqs += range(first_seq, first_seq + len(lines))
        self._events += map(StreamEvent, lines)
        self._times += [time_ms] * len(lines)
        self._copies += [None] * len(lines)
        ends = self._ends
        for line in lines:
            at += len(line) + _OVERHEAD_BYTES
            ends.append(at)
        self._budget.grew(self, at - before)
        self._trim()

    def slice(
        self, after: int, until: int, max_bytes: int, *, with_cursors: bool
    ) -> tuple[list[StreamEvent], int, int]:
        """Give messages after one record until another: at least one and no more than fit, their size, the last seq."""
        begin = bisect_right(self._seqs, after)
        end = bisect_right(self._seqs, until, begin)
        if begin == end:
            return [], 0, until
        before = self._ends[begin - 1] if begin else self._dropped
        fit = max(begin + 1, bisect_right(self._ends, before + max_bytes, begin, end))
        reached = until if fit == end else self._seqs[fit - 1]
        events = self._with_cursors(begin, fit) if with_cursors else self._events[begin:fit]
        return events, self._ends[fit - 1] - before, reached

    def seqs(self, after: int, reached: int) -> list[int]:
        """Give the sequence numbers of the messages after one record until another."""
        return self._seqs[bisect_right(self._seqs, after) : bisect_right(self._seqs, reached)]

    def hold(self, epoch: bytes) -> None:
        """Drop nothing until `release`; cursors have this epoch from now on."""
        self.is_held = True
        self._epoch = epoch

    def release(self, epoch: bytes) -> None:
        """Keep no more than usual again; cursors have this epoch from now on."""
        self.is_held = False
        self._epoch = epoch
        if self._seqs:
            self._trim()

    def drop(self) -> None:
        """Drop all of it."""
        if self._seqs:
            self._cut(len(self._seqs))

    def _with_cursors(self, begin: int, end: int) -> list[StreamEvent]:
        copies = self._copies[begin:end]
        if None not in copies:
            return cast("list[StreamEvent]", copies)
        size = 0
        for index in range(begin, end):
            if self._copies[index] is None:
                cursor = b"%b.%d" % (self._epoch, self._seqs[index])
                line = add_cursor(self._events[index].data, cursor, self._times[index])
                self._copies[index] = copy = StreamEvent(line)
                size += len(copy.data) + _COPY_OVERHEAD_BYTES
        copies = cast("list[StreamEvent]", self._copies[begin:end])
        self._copied_bytes += size
        self._budget.grew(self, size)
        if self._copied_bytes > self._budget.tail_bytes:
            self._drop_copies()
        return copies

    def _drop_copies(self) -> None:
        self._copies = [None] * len(self._copies)
        size, self._copied_bytes = self._copied_bytes, 0
        self._budget.shrank(self, size, empty=False)

    def _trim(self) -> None:
        over = self._ends[-1] - self._dropped - self._budget.tail_bytes
        if over > self._budget.tail_bytes // 4 and not self.is_held:  # seldom, because each cut moves the rest
            self._cut(min(bisect_right(self._ends, self._dropped + over) + 1, len(self._seqs)))

    def _cut(self, count: int) -> None:
        copied = sum(len(copy.data) + _COPY_OVERHEAD_BYTES for copy in self._copies[:count] if copy is not None)
        self._copied_bytes -= copied
        size = self._ends[count - 1] - self._dropped + copied
        self.start = self._seqs[count - 1]
        self._dropped = self._ends[count - 1]
        for kept in (self._seqs, self._events, self._times, self._copies, self._ends):
            del kept[:count]
        self._budget.shrank(self, size, empty=not self._seqs)
