"""A viewer on a session: a cursor into the session's journal, and the direct messages for this viewer.

Nothing of the journal is copied for a viewer. It is at some record, and receives the records that follow: from memory
if they are still there, else a part at a time from the disk.

The viewer receives the records in its own form, which `edge` makes. A viewer that continues at a cursor may need the
edge to read the records up to there first. It is sent nothing of those.
"""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dragoman.bridge.delivery import Cursor, MessageRun, StreamItem
from dragoman.bridge.viewers.direct_queue import DirectQueue
from dragoman.bridge.viewers.edge import SessionEdge
from dragoman.store.history import ReadableHistory
from dragoman.store.runs import HistoryPart, slice_runs

if TYPE_CHECKING:
    from dragoman.bridge.viewers.viewer import Viewer

_MAX_SKIPS = 1_000
"""Own prompts that are remembered as not to be shown. A viewer that returns with an older cursor sees them."""

_MAX_PASSED = 8
"""Messages that are compared with the viewer's own prompts before its stream is woken."""


class Subscription:
    """One viewer on one session. Without a journal it is a stream that was opened before the session."""

    def __init__(self, viewer: "Viewer", session_id: str, queue: DirectQueue) -> None:
        self.session_id = session_id
        self.history: ReadableHistory | None = None
        self.queue = queue
        self.cursor = 0
        """The last record that was read, or was not for this viewer."""
        self.arrived = 0
        """The last record that was sent. Its reader has asked for more since."""
        self.resume_from: Cursor | None = None
        """The cursor that a stream named before the session was opened."""
        self._viewer = viewer
        self._named = 0
        """The last record that the viewer has named."""
        self._skips: dict[int, None] = {}
        self._part: HistoryPart | None = None
        self._fetching = False
        self.edge = SessionEdge(viewer, session_id)

    @property
    def position(self) -> int:
        """The last record that the viewer has."""
        return max(self.cursor, self.edge.silent_until)

    @property
    def lag(self) -> int:
        """The number of records that the viewer has not received."""
        return 0 if self.history is None else max(0, self.history.end - self.position)

    def bind(self, history: ReadableHistory, cursor: int, *, has_history: bool = False) -> None:
        """Begin at a record of a journal. A viewer that begins further back sees its own prompts.

        `has_history` says that the viewer has the records before, so that those after it continue them.
        """
        if cursor < self.position:
            self._skips.clear()
        before, self.history = self.history, history
        is_same = before is history or (before is not None and before.epoch == history.epoch)
        if not (has_history and is_same and cursor == self.position):
            self._named = cursor  # a viewer that continues where it is may not have received everything up to there
        self._begin(cursor, 0 if has_history else cursor)
        if history is not before:
            self.queue.bring_forward(history.next_end)  # the numbers of another journal mean nothing here

    def pop_resume_from(self) -> Cursor | None:
        """Return the cursor that a stream named before the session was opened, once."""
        cursor, self.resume_from = self.resume_from, None
        return cursor

    def skip(self, seq: int) -> None:
        """Leave out a record, which is this viewer's own prompt."""
        self._skips[seq] = None
        if len(self._skips) > _MAX_SKIPS:
            del self._skips[next(iter(self._skips))]

    def record_sent(self) -> None:
        """Note that everything read was sent."""
        self.arrived = self.cursor

    def go_back(self, cursor: Cursor | None) -> None:
        """Begin at the cursor of a stream that was opened again, or without one after the last that was named."""
        if self.history is None:
            self.resume_from = cursor or self.resume_from
        elif cursor is None or not self.history.has(cursor):
            self._go_to(self._named)
            self.queue.rewind()
        else:
            self._go_to(cursor.seq)
            self._named = cursor.seq
            self.queue.rewind(cursor.number)

    def event_id(self) -> bytes | None:
        """Return the position as the id of an event. None before there is a journal."""
        if self.history is None:
            return None
        return b"%b.%d.%d" % (self.history.epoch.encode(), self.position, self.queue.number)

    def has_more(self) -> bool:
        """Return whether `pull` would return something now."""
        if self.history is None:
            return False
        if self._is_direct_due(self.history):
            return True
        return not self._fetching and self.cursor < self._limit(self.history)

    def pass_over(self) -> bool:
        """Move to the end of the journal if it has no more messages for this viewer. Return whether it has none.

        A turn begins with the viewer's own prompt and ends with a record that no viewer receives. Without this, both
        would wake the viewer's stream for nothing.
        """
        history = self.history
        if history is None or self.queue.waiting or self._fetching:
            return False
        if self.cursor < max(history.tail.start, self.edge.silent_until):
            return False
        numbers = history.tail.numbers_after(self.cursor, _MAX_PASSED + 1)
        if len(numbers) > _MAX_PASSED or not self._skips.keys() >= set(numbers):
            return False
        self.cursor = max(self.cursor, history.end)
        return True

    def pull(self, max_bytes: int, *, numbered: bool) -> tuple[list[StreamItem], int]:
        """Return the next messages that fit, at least one if there is any, and their size."""
        items: list[StreamItem] = []
        size = 0
        while (history := self.history) is not None and size < max_bytes:
            if self._is_direct_due(history):
                direct = self.queue.pop()
                items.append(self._item(history, MessageRun.of_message(direct.data, self.cursor), numbered=numbered))
                size += len(direct.data)
                continue
            until = self._limit(history)
            if self.cursor >= until:
                break
            before = self.cursor
            runs, more_bytes = self._next_runs(history, until, max_bytes - size)
            if not runs and self._fetching:
                break
            if before < self.edge.silent_until:
                self.edge.read_silently(history, runs)
                size += more_bytes
                continue
            if self._skips and next(reversed(self._skips)) > before:
                runs = [part for run in runs for part in self._without_skips(run)]
            runs = self.edge.adapt(history, runs)
            items += [self._item(history, run, numbered=numbered) for run in runs]
            size += more_bytes
        if size and not items and self.has_more():  # records that say nothing to this viewer: let others have a turn
            asyncio.get_running_loop().call_soon(self._viewer.wake, self)
        return items, size

    def may_show(self, after: int) -> bool:
        """Return whether the journal has a record, so that a message after it may be sent."""
        return self.history is None or after <= self.history.end

    def _is_direct_due(self, history: ReadableHistory) -> bool:
        """Return whether the next direct message may be sent: its record was read, and is in the journal for good."""
        waiting = self.queue.waiting
        return bool(waiting) and waiting[0].after <= self.cursor and waiting[0].after <= history.end

    def _go_to(self, seq: int) -> None:
        if seq != self.cursor:
            self._begin(seq, self.edge.origin)
        self.arrived = self.cursor
        self._part = None

    def _begin(self, cursor: int, origin: int) -> None:
        """Begin after a record, or before it if the edge has to read the records up to there."""
        self.cursor = self.arrived = self.edge.restart(self.history, cursor, origin)
        self._part = None

    def _limit(self, history: ReadableHistory) -> int:
        """Return the last record that may be sent before the next direct message."""
        waiting = self.queue.waiting
        limit = min(history.end, waiting[0].after) if waiting else history.end
        silent_until = self.edge.silent_until
        return min(limit, silent_until) if self.cursor < silent_until else limit

    def _next_runs(self, history: ReadableHistory, until: int, max_bytes: int) -> tuple[list[MessageRun], int]:
        """Return messages from memory or the part that was read. If neither has them, read the next part."""
        tail = history.tail
        before = self.cursor
        if before >= tail.start:
            self._part = None
            runs, size, self.cursor = tail.slice(before, until, max_bytes, self.edge.mark_for(history))
            return runs, size
        if self._fetching:
            return [], 0
        part = self._part
        if part is None or part.reached <= before:
            self._fetching = True
            self._viewer.spawn(self._fetch(history, min(tail.start, history.end)))
            return [], 0
        runs, size, self.cursor = slice_runs(part.runs, before, min(part.reached, until), max_bytes)
        return runs, size

    def _without_skips(self, run: MessageRun) -> Iterator[MessageRun]:
        """Leave out the viewer's own prompts."""
        after = run.first - 1
        for skipped in self._skips_in(run):
            if skipped - 1 > after:
                yield run.part(after, skipped - 1)
            after = skipped
        if after < run.last:
            yield run.part(after, run.last)

    def _skips_in(self, run: MessageRun) -> list[int]:
        numbers = range(run.first, run.last + 1)
        if len(numbers) < len(self._skips):
            return [seq for seq in numbers if seq in self._skips]
        return [seq for seq in self._skips if seq in numbers]

    def _item(self, history: ReadableHistory, run: MessageRun, *, numbered: bool) -> StreamItem:
        return StreamItem(run, history.epoch.encode(), self.queue.number) if numbered else StreamItem(run)

    async def _fetch(self, history: ReadableHistory, until: int) -> None:
        """Read the next part from the disk in the background, then wake the stream."""
        after = self.cursor
        try:
            part = await history.read(after, until, self.edge.mark_for(history))
        except OSError as error:
            self._viewer.drop(f"the journal of session {self.session_id} cannot be read: {error.strerror}")
            return
        finally:
            self._fetching = False
        if self.history is history and self.cursor == after:  # otherwise it moved during the read
            self._part = part
            if not part.runs:
                self.cursor = max(self.cursor, part.reached)
        self._viewer.wake(self)
