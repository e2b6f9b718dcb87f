"""The end of a journal in memory: what viewers at the edge are served from, all from the same bytes.

Viewers that want to know where each message stands get a marked copy of it, which is made once for all of them. Copies
count like the messages themselves, and can be made again at any time: when there are too many, all are let go.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import cast

from dragoman.bridge.envelope import mark
from dragoman.bridge.hub.event import Event

_OVERHEAD_BYTES = 160
"""What a message costs beside its own bytes."""

_MARK_OVERHEAD_BYTES = 96
"""What a marked copy costs beside its own bytes."""


class TailBudget:
    """All tails together; those not written for longest are let go first."""

    def __init__(self, tail_bytes: int, all_bytes: int) -> None:
        self.tail_bytes = tail_bytes
        self._all_bytes = all_bytes
        self._total = 0
        self._tails: dict[Tail, None] = {}

    def grew(self, tail: "Tail", size: int) -> None:
        """Count what a tail took up."""
        self._total += size
        self._tails.pop(tail, None)
        self._tails[tail] = None
        if self._total > self._all_bytes:
            self._let_oldest_go(tail)

    def shrank(self, tail: "Tail", size: int, *, empty: bool) -> None:
        """Count what a tail let go."""
        self._total -= size
        if empty:
            self._tails.pop(tail, None)

    def _let_oldest_go(self, but: "Tail") -> None:
        for tail in [tail for tail in self._tails if tail is not but and not tail.is_held]:
            if self._total <= self._all_bytes:
                return
            tail.drop()


class Tail:
    """The last messages of a journal, by their sequence numbers."""

    def __init__(self, budget: TailBudget, epoch: bytes, start: int) -> None:
        self.start = start
        """Every message after this one is in here."""
        self.is_held = False
        """Whether it is the only place where some of it is, so that nothing may be let go."""
        self._budget = budget
        self._epoch = epoch
        self._seqs: list[int] = []
        self._events: list[Event] = []
        self._times: list[int] = []
        self._marked: list[Event | None] = []
        self._marked_bytes = 0
        self._ends: list[int] = []
        self._let_go = 0

    def extend(self, first_seq: int, lines: Sequence[bytes], time_ms: int) -> None:
        """Take messages that follow each other."""
        before = at = self._ends[-1] if self._ends else self._let_go
        self._seqs += range(first_seq, first_seq + len(lines))
        self._events += map(Event, lines)
        self._times += [time_ms] * len(lines)
        self._marked += [None] * len(lines)
        ends = self._ends
        for line in lines:
            at += len(line) + _OVERHEAD_BYTES
            ends.append(at)
        self._budget.grew(self, at - before)
        self._trim()

    def slice(self, after: int, until: int, max_bytes: int, *, marked: bool) -> tuple[list[Event], int, int]:
        """Give messages of two places that fit, at least one, with their size and the place reached."""
        begin = bisect_right(self._seqs, after)
        end = bisect_right(self._seqs, until, begin)
        if begin == end:
            return [], 0, until
        before = self._ends[begin - 1] if begin else self._let_go
        fit = max(begin + 1, bisect_right(self._ends, before + max_bytes, begin, end))
        reached = until if fit == end else self._seqs[fit - 1]
        events = self._marks(begin, fit) if marked else self._events[begin:fit]
        return events, self._ends[fit - 1] - before, reached

    def places(self, after: int, reached: int) -> list[int]:
        """Give the sequence numbers of the messages between two places."""
        return self._seqs[bisect_right(self._seqs, after) : bisect_right(self._seqs, reached)]

    def hold(self, epoch: bytes) -> None:
        """Keep everything, and mark what comes with another epoch."""
        self.is_held = True
        self._epoch = epoch

    def let_go(self, epoch: bytes) -> None:
        """Keep no more than usual again."""
        self.is_held = False
        self._epoch = epoch
        if self._seqs:
            self._trim()

    def drop(self) -> None:
        """Let all of it go."""
        if self._seqs:
            self._cut(len(self._seqs))

    def _marks(self, begin: int, end: int) -> list[Event]:
        marked = self._marked[begin:end]
        if None not in marked:
            return cast("list[Event]", marked)
        size = 0
        for index in range(begin, end):
            if self._marked[index] is None:
                cursor = b"%b.%d" % (self._epoch, self._seqs[index])
                self._marked[index] = copy = Event(mark(self._events[index].data, cursor, self._times[index]))
                size += len(copy.data) + _MARK_OVERHEAD_BYTES
        marked = cast("list[Event]", self._marked[begin:end])
        self._marked_bytes += size
        self._budget.grew(self, size)
        if self._marked_bytes > self._budget.tail_bytes:
            self._forget_marks()
        return marked

    def _forget_marks(self) -> None:
        self._marked = [None] * len(self._marked)
        size, self._marked_bytes = self._marked_bytes, 0
        self._budget.shrank(self, size, empty=False)

    def _trim(self) -> None:
        over = self._ends[-1] - self._let_go - self._budget.tail_bytes
        if over > self._budget.tail_bytes // 4 and not self.is_held:  # seldom, because each time moves what stays
            self._cut(min(bisect_right(self._ends, self._let_go + over) + 1, len(self._seqs)))

    def _cut(self, count: int) -> None:
        marks = sum(len(copy.data) + _MARK_OVERHEAD_BYTES for copy in self._marked[:count] if copy is not None)
        self._marked_bytes -= marks
        size = self._ends[count - 1] - self._let_go + marks
        self.start = self._seqs[count - 1]
        self._let_go = self._ends[count - 1]
        for kept in (self._seqs, self._events, self._times, self._marked, self._ends):
            del kept[:count]
        self._budget.shrank(self, size, empty=not self._seqs)
