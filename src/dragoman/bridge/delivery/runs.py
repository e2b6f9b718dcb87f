"""Runs: messages that follow each other in a journal, which are kept, cut and sent as one piece of bytes.

There is no object for each message. A run is encoded as a whole (frames of a WebSocket, events of a stream) and keeps
its encodings, so that all viewers that are given the same run are sent the same bytes.

The tail of a journal, its last runs, is kept in memory; viewers that keep up are served from it. Copies of a run (with
cursors, and as viewers read it) count like the messages themselves, and can be made again at any time: when there are
too many, all are dropped.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Self

import msgspec

from dragoman.bridge.envelope import add_cursors
from dragoman.store.block import write_numbers

_MAX_ENCODINGS = 4
"""Encodings of one run: over HTTP they differ with the number of messages that a viewer was sent besides."""

_COPY_OVERHEAD_BYTES = 200
"""Memory of a copy beside its own bytes."""

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")

Encoder = Callable[[list[bytes], list[bytes] | None], bytes]
"""Puts messages, and maybe an id for each, into the form in which a viewer reads them."""

_EncodingKey = tuple[Encoder, bytes | None, int]


class MessageRun:
    """Messages without a gap between their numbers, each one line of JSON with a newline."""

    __slots__ = (
        "_encodings",
        "_on_copy",
        "_unchanged_by",
        "_with_cursors",
        "copied_bytes",
        "first",
        "last",
        "lines",
        "time_ms",
    )

    def __init__(self, lines: bytes, first: int, time_ms: int = 0, *, count: int | None = None) -> None:
        self.lines = lines
        self.first = first
        self.last = first - 1 + (lines.count(b"\n") if count is None else count)
        self.time_ms = time_ms
        """The time of the write, in milliseconds since 1970."""
        self.copied_bytes = 0
        """Memory of its copies."""
        self._encodings: dict[_EncodingKey, bytes] = {}
        self._with_cursors: MessageRun | None = None
        self._unchanged_by: Callable[[bytes], bytes] | None = None
        self._on_copy: Callable[[int], None] | None = None

    @classmethod
    def of_message(cls, message: bytes, seq: int = 0) -> Self:
        """Make a run of one message; line ends between its tokens become spaces."""
        if b"\n" in message or b"\r" in message:
            message = message.translate(_ONE_LINE)
        return cls(message + b"\n", seq, count=1)

    def count_copies(self, on_copy: Callable[[int], None] | None) -> None:
        """Have the sizes of copies that are made from now on told, or no longer."""
        self._on_copy = on_copy

    def messages(self) -> list[bytes]:
        """Return the messages, without newlines."""
        return self.lines[:-1].split(b"\n")

    def part(self, after: int, until: int) -> "MessageRun":
        """Return the messages between two records, of which there is at least one."""
        if after < self.first and until >= self.last:
            return self
        begin, end = max(after + 1 - self.first, 0), until + 1 - self.first
        messages = self.messages()[begin:end]
        return MessageRun(b"\n".join([*messages, b""]), self.first + begin, self.time_ms, count=len(messages))

    def fit(self, max_bytes: int) -> "MessageRun":
        """Return as many of the first messages as fit, at least one."""
        if len(self.lines) <= max_bytes:
            return self
        end = self.lines.rfind(b"\n", 0, max(max_bytes, 0)) + 1 or self.lines.index(b"\n") + 1
        return MessageRun(self.lines[:end], self.first, self.time_ms)

    def change(self, change: Callable[[bytes], bytes]) -> "MessageRun":
        """Return the run with other lines in the place of its own.

        Viewers with the same capabilities have the same function: one that changes nothing looks at the lines once.
        """
        if change is self._unchanged_by:
            return self
        lines = change(self.lines)
        if lines != self.lines:
            return MessageRun(lines, self.first, self.time_ms)
        self._unchanged_by = change
        return self

    def with_cursors(self, epoch: bytes) -> "MessageRun":
        """Return the run with a cursor in each message: a copy that is made once."""
        if self._with_cursors is None:
            lines = add_cursors(self.lines, epoch, self.first, self.time_ms)
            self._with_cursors = run = MessageRun(lines, self.first, self.time_ms, count=self.last - self.first + 1)
            run.count_copies(self._copied)
            self._copied(len(lines))
        return self._with_cursors

    def encode(self, encoder: Encoder, epoch: bytes | None = None, number: int = 0) -> bytes:
        """Return the run as an encoder makes it, with ids if there is an epoch; a copy that is made once."""
        key = encoder, epoch, number
        found = self._encodings.get(key)
        if found is None:
            found = encoder(self.messages(), None if epoch is None else self.ids(epoch, number))
            if len(self._encodings) < _MAX_ENCODINGS:
                self._encodings[key] = found
                self._copied(len(found))
        return found

    def ids(self, epoch: bytes, number: int) -> list[bytes]:
        """Return the id of each message as an event: its place in the journal, and among the messages of a viewer."""
        end = b".%d" % number
        return [b"%b.%b%b" % (epoch, seq, end) for seq in write_numbers(self.first, self.last - self.first + 1)]

    def forget_copies(self) -> None:
        """Drop the copies; they can be made again."""
        self._encodings.clear()
        self._with_cursors = None
        self.copied_bytes = 0

    def _copied(self, size: int) -> None:
        size += _COPY_OVERHEAD_BYTES
        self.copied_bytes += size
        if self._on_copy is not None:
            self._on_copy(size)


class StreamItem(msgspec.Struct, frozen=True, gc=False):
    """A run as one viewer is given it."""

    run: MessageRun
    epoch: bytes | None = None
    """With the next, the ids of its events, by which a viewer over HTTP goes on; None without ids."""
    number: int = 0

    def messages(self) -> list[bytes]:
        """Return the messages, without newlines."""
        return self.run.messages()

    def ids(self) -> list[bytes]:
        """Return the id of each message; none without an epoch."""
        return [] if self.epoch is None else self.run.ids(self.epoch, self.number)

    def encode(self, encoder: Encoder) -> bytes:
        """Return the run as an encoder makes it."""
        return self.run.encode(encoder, self.epoch, self.number)


def slice_runs(runs: Sequence[MessageRun], after: int, until: int, max_bytes: int) -> tuple[list[MessageRun], int, int]:
    """Return the messages between two records that fit, their size, and the record that is reached.

    At least one message is given if there is any. Otherwise runs are given whole: a part has no copies to share.
    """
    given: list[MessageRun] = []
    size = 0
    for run in runs:
        if run.last <= after:
            continue
        if run.first > until:
            break
        part = run.part(after, until)
        if size + len(part.lines) > max_bytes:
            if not given:
                part = part.fit(max_bytes)
                return [part], len(part.lines), part.last
            return given, size, given[-1].last
        given.append(part)
        size += len(part.lines)
    return given, size, until


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
