"""The end of a journal in memory, from which all viewers that keep up are served the same bytes.

Copies of a run (with cursors, and as viewers read it) are made once for all viewers. They count like the messages
themselves, and can be made again at any time: when there are too many, all are dropped.
"""

from bisect import bisect_right

from dragoman.bridge.delivery.run import MessageRun, slice_runs

_OVERHEAD_BYTES = 400
"""Memory of a run beside its own bytes."""


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
    """The last messages of a journal, in the runs in which they were written."""

    def __init__(self, budget: TailBudget, epoch: bytes, start: int) -> None:
        self.start = start
        """Every message after this one is in here."""
        self.is_held = False
        """Whether some of it is nowhere else, because the disk is full: then nothing is dropped."""
        self._budget = budget
        self._epoch = epoch
        self._runs: list[MessageRun] = []
        self._lasts: list[int] = []
        """The last number of each run, for bisect."""
        self._size = 0
        self._copied_bytes = 0

    def extend(self, first: int, lines: bytes, time_ms: int, *, count: int | None = None) -> None:
        """Take messages that follow each other."""
        run = MessageRun(lines, first, time_ms, count=count)
        run.count_copies(self._copied)
        self._runs.append(run)
        self._lasts.append(run.last)
        self._size += len(lines) + _OVERHEAD_BYTES
        self._budget.grew(self, len(lines) + _OVERHEAD_BYTES)
        self._trim()

    def slice(self, after: int, until: int, max_bytes: int, *, with_cursors: bool) -> tuple[list[MessageRun], int, int]:
        """Return the messages between two records that fit, their size, and the record that is reached."""
        if self._copied_bytes > self._budget.tail_bytes:
            self._drop_copies()
        begin = bisect_right(self._lasts, after)
        wanted = self._runs[begin : begin + 1]
        size = len(wanted[0].lines) if wanted else 0
        for run in self._runs[begin + 1 : bisect_right(self._lasts, until) + 1]:
            if size >= max_bytes:
                break
            wanted.append(run)
            size += len(run.lines)
        reached = min(until, wanted[-1].last) if begin + len(wanted) < len(self._runs) else until
        if with_cursors:
            wanted = [run.with_cursors(self._epoch) for run in wanted]
        return slice_runs(wanted, after, reached, max_bytes)

    def hold(self, epoch: bytes) -> None:
        """Drop nothing until `release`; cursors have this epoch from now on."""
        self.is_held = True
        self._epoch = epoch

    def release(self, epoch: bytes) -> None:
        """Keep no more than usual again; cursors have this epoch from now on."""
        self.is_held = False
        self._epoch = epoch
        self._trim()

    def drop(self) -> None:
        """Drop all of it."""
        if self._runs:
            self._cut(len(self._runs))

    def _copied(self, size: int) -> None:
        self._copied_bytes += size
        self._budget.grew(self, size)

    def _drop_copies(self) -> None:
        for run in self._runs:
            run.forget_copies()
        size, self._copied_bytes = self._copied_bytes, 0
        self._budget.shrank(self, size, empty=False)

    def _trim(self) -> None:
        over = self._size - self._budget.tail_bytes
        if over <= self._budget.tail_bytes // 4 or self.is_held:  # seldom, because each cut moves the rest
            return
        count = 0
        while over > 0:
            over -= len(self._runs[count].lines) + _OVERHEAD_BYTES
            count += 1
        self._cut(count)

    def _cut(self, count: int) -> None:
        cut = self._runs[:count]
        copied = sum(run.copied_bytes for run in cut)
        size = sum(len(run.lines) + _OVERHEAD_BYTES for run in cut)
        for run in cut:
            run.count_copies(None)  # a viewer may still be about to encode it
            run.forget_copies()
        self.start = cut[-1].last
        del self._runs[:count], self._lasts[:count]
        self._copied_bytes -= copied
        self._size -= size
        self._budget.shrank(self, size + copied, empty=not self._runs)
