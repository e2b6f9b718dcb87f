"""Runs: consecutive messages of a history that are stored, cut and sent as one piece of bytes.

There is no object for each message. A run is encoded as a whole, as frames of a WebSocket or events of a stream. It
keeps its encodings, so all viewers that receive the same run are sent the same bytes.

The tail of a history is its last runs. It is kept in memory for the viewers that keep up. The copies of a run, with
cursors or encoded, count toward the limit like the messages. They can be made again at any time, so all of them are
dropped if there are too many.
"""

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Self

import msgspec

from dragoman.store.block import Block, write_numbers

_MAX_ENCODINGS = 4
"""The most encodings of a run. Over HTTP they differ by the number of direct messages that a viewer was sent."""

_COPY_OVERHEAD_BYTES = 200
"""The memory of a copy in addition to its bytes."""

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")

Encoder = Callable[[list[bytes], list[bytes] | None], bytes]
"""Encodes messages, optionally with an id for each, for the transport of a viewer."""

AddCursors = Callable[[bytes, bytes, int, int], bytes]
"""Adds a cursor and the time to each line. Arguments: the lines, the epoch, the number of the first line, the time."""

Mark = Callable[["MessageRun"], "MessageRun"]
"""Returns a replacement for a stored run, for example a copy with cursors."""

_EncodingKey = tuple[Encoder, bytes | None, int]


class MessageRun:
    """Consecutive messages, each one line of JSON with a newline."""

    __slots__ = (
        "_encodings",
        "_on_copy",
        "_unchanged_by",
        "_with_cursors",
        "copied_bytes",
        "first",
        "is_ordinary",
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
        self.is_ordinary = False
        """Whether it has only updates that all viewers support, so that they need not be searched for others."""
        self.copied_bytes = 0
        """The memory of its copies."""
        self._encodings: dict[_EncodingKey, bytes | None] = {}
        """The encodings that were used twice, and None for those used once. Most sessions have only one viewer."""
        self._with_cursors: MessageRun | None = None
        self._unchanged_by: Callable[[bytes], bytes] | None = None
        self._on_copy: Callable[[int], None] | None = None

    @classmethod
    def of_message(cls, message: bytes, seq: int = 0) -> Self:
        """Make a run of one message. Line ends between its tokens become spaces."""
        if b"\n" in message or b"\r" in message:
            message = message.translate(_ONE_LINE)
        return cls(message + b"\n", seq, count=1)

    def count_copies(self, on_copy: Callable[[int], None] | None) -> None:
        """Call `on_copy` with the size of each new copy. None stops that."""
        self._on_copy = on_copy

    def messages(self) -> list[bytes]:
        """Return the messages, without newlines."""
        return self.lines[:-1].split(b"\n")

    def part(self, after: int, until: int) -> "MessageRun":
        """Return the messages after line `after` up to line `until`. There must be at least one."""
        if after < self.first and until >= self.last:
            return self
        begin, end = max(after + 1 - self.first, 0), until + 1 - self.first
        messages = self.messages()[begin:end]
        return MessageRun(b"\n".join([*messages, b""]), self.first + begin, self.time_ms, count=len(messages))

    def fit(self, max_bytes: int) -> "MessageRun":
        """Return as many of the first messages as fit into `max_bytes`, but at least one."""
        if len(self.lines) <= max_bytes:
            return self
        end = self.lines.rfind(b"\n", 0, max(max_bytes, 0)) + 1 or self.lines.index(b"\n") + 1
        return MessageRun(self.lines[:end], self.first, self.time_ms)

    def change(self, change: Callable[[bytes], bytes]) -> "MessageRun":
        """Return the run with its lines changed.

        Viewers with the same capabilities share the same function. If it changes nothing, it is called only once.
        """
        if change is self._unchanged_by:
            return self
        lines = change(self.lines)
        if lines != self.lines:
            return MessageRun(lines, self.first, self.time_ms)
        self._unchanged_by = change
        return self

    def with_cursors(self, epoch: bytes, add: AddCursors) -> "MessageRun":
        """Return the run with a cursor in each message. The copy is made once."""
        if self._with_cursors is None:
            lines = add(self.lines, epoch, self.first, self.time_ms)
            self._with_cursors = run = MessageRun(lines, self.first, self.time_ms, count=self.last - self.first + 1)
            run.count_copies(self._copied)
            self._copied(len(lines))
        return self._with_cursors

    def encode(self, encoder: Encoder, epoch: bytes | None = None, number: int = 0) -> bytes:
        """Return the encoded run, with ids if there is an epoch. From the second use on, the copy is kept."""
        key = encoder, epoch, number
        found = self._encodings.get(key)
        if found is None:
            found = encoder(self.messages(), None if epoch is None else self.ids(epoch, number))
            if key in self._encodings:
                self._encodings[key] = found
                self._copied(len(found))
            elif len(self._encodings) < _MAX_ENCODINGS:
                self._encodings[key] = None
        return found

    def ids(self, epoch: bytes, number: int) -> list[bytes]:
        """Return the event id of each message: its place in the history and in the direct messages of a viewer."""
        end = b".%d" % number
        return [b"%b.%b%b" % (epoch, seq, end) for seq in write_numbers(self.first, self.last - self.first + 1)]

    def forget_copies(self) -> None:
        """Drop the copies, which can be made again."""
        self._encodings.clear()
        self._with_cursors = None
        self.copied_bytes = 0

    def _copied(self, size: int) -> None:
        size += _COPY_OVERHEAD_BYTES
        self.copied_bytes += size
        if self._on_copy is not None:
            self._on_copy(size)


def slice_runs(runs: Sequence[MessageRun], after: int, until: int, max_bytes: int) -> tuple[list[MessageRun], int, int]:
    """Return the messages between two lines that fit, their size, and the number of the last line that was reached.

    If there is any message, at least one is returned. Otherwise only whole runs are returned, because a part of a run
    has no copies to share.
    """
    found: list[MessageRun] = []
    size = 0
    for run in runs:
        if run.last <= after:
            continue
        if run.first > until:
            break
        part = run.part(after, until)
        if size + len(part.lines) > max_bytes:
            if not found:
                part = part.fit(max_bytes)
                return [part], len(part.lines), part.last
            return found, size, found[-1].last
        found.append(part)
        size += len(part.lines)
    return found, size, until


_OVERHEAD_BYTES = 400
"""The memory of a run in addition to its bytes."""


class HistoryPart(msgspec.Struct):
    """Consecutive runs, and the number of the line up to which they are complete."""

    runs: list[MessageRun]
    reached: int


def runs_of(block: Block, after: int, until: int) -> Iterator[MessageRun]:
    """Yield the messages of a block between two lines."""
    if block.last <= after or block.first > until:
        return
    for first, count, lines in block.runs():
        run = MessageRun(lines, first, block.time, count=count)
        if run.last > after and run.first <= until:
            yield run.part(after, until)


class TailBudget:
    """Limits the memory of all tails together. The tails that were not written to for longest are dropped first."""

    def __init__(self, tail_bytes: int, all_bytes: int) -> None:
        self.tail_bytes = tail_bytes
        self._all_bytes = all_bytes
        self._total = 0
        self._tails: dict[Tail, None] = {}

    def grew(self, tail: "Tail", size: int) -> None:
        """Count bytes that were added to a tail."""
        self._total += size
        self._tails.pop(tail, None)
        self._tails[tail] = None
        if self._total > self._all_bytes:
            self._drop_oldest(tail)

    def shrank(self, tail: "Tail", size: int, *, empty: bool) -> None:
        """Count bytes that were removed from a tail."""
        self._total -= size
        if empty:
            self._tails.pop(tail, None)

    def _drop_oldest(self, but: "Tail") -> None:
        for tail in [tail for tail in self._tails if tail is not but and not tail.is_held]:
            if self._total <= self._all_bytes:
                return
            tail.drop()


class Tail:
    """The last messages of a history, in the runs in which they were written."""

    def __init__(self, budget: TailBudget, start: int) -> None:
        self.start = start
        """The tail has every message after the line with this number."""
        self.is_held = False
        """Whether nothing may be dropped, because the disk is full and some messages are only here."""
        self._budget = budget
        self._runs: list[MessageRun] = []
        self._lasts: list[int] = []
        """The last number of each run, for bisect."""
        self._size = 0
        self._copied_bytes = 0

    def extend(
        self, first: int, lines: bytes, time_ms: int, *, count: int | None = None, is_ordinary: bool = False
    ) -> None:
        """Add consecutive messages."""
        run = MessageRun(lines, first, time_ms, count=count)
        run.is_ordinary = is_ordinary
        run.count_copies(self._copied)
        self._runs.append(run)
        self._lasts.append(run.last)
        self._size += len(lines) + _OVERHEAD_BYTES
        self._budget.grew(self, len(lines) + _OVERHEAD_BYTES)
        self._trim()

    def slice(
        self, after: int, until: int, max_bytes: int, mark: Mark | None = None
    ) -> tuple[list[MessageRun], int, int]:
        """Return the messages between two lines that fit, their size, and the number of the last line reached."""
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
        if mark is not None:
            wanted = [mark(run) for run in wanted]
        return slice_runs(wanted, after, reached, max_bytes)

    def numbers_after(self, after: int, limit: int) -> list[int]:
        """Return the numbers of up to `limit` messages after a line."""
        runs = self._runs[bisect_right(self._lasts, after) :][:limit]
        return [seq for run in runs for seq in range(max(run.first, after + 1), run.last + 1)[:limit]][:limit]

    def hold(self) -> None:
        """Drop nothing until `release`."""
        self.is_held = True

    def release(self) -> None:
        """Drop messages over the limit again."""
        self.is_held = False
        self._trim()

    def drop(self) -> None:
        """Drop all messages."""
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
        if over <= self._budget.tail_bytes // 4 or self.is_held:  # cut rarely, because each cut moves the rest
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
            run.count_copies(None)  # because a viewer may still encode it
            run.forget_copies()
        self.start = cut[-1].last
        del self._runs[:count], self._lasts[:count]
        self._copied_bytes -= copied
        self._size -= size
        self._budget.shrank(self, size + copied, empty=not self._runs)
