"""A viewer on a session: a cursor into the session's journal, and the direct messages for this viewer.

Nothing of the journal is copied for a viewer. It is at some record, and takes the records that follow: from memory
where they still are, else a part at a time from the disk.

Direct messages are those for one viewer alone, such as answers to its requests and requests to it. Each names the
record of the session's journal that it must follow: it goes out once the cursor has reached that record, and no record
beyond goes out before it. They are numbered as they are taken. Over HTTP, a taken message is kept until the viewer
shows that it arrived, by a later `Last-Event-ID` or by its actions (it answers the request, it uses the session that it
was told of), because a stream may break after a message was taken and before it was read.

A viewer that opens a stream again without an id has seen none of its events, or does not keep ids. A viewer that has
acted on an event and still sends no id does not keep ids: it gets again only the messages that were not even sent. Any
other viewer gets again everything that it did not show to have.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from dragoman.bridge.delivery.journal import Cursor
from dragoman.bridge.delivery.journal_file import JournalPart
from dragoman.bridge.delivery.runs import JournalTail, MessageRun, StreamItem, slice_runs
from dragoman.bridge.envelope import rename_terminals

_MAX_SKIPS = 1_000
"""Own prompts that are remembered as not to be shown; a viewer that comes back by an older cursor sees them."""


class Gate(Protocol):
    """A subscription, as a message of the connection's stream waits for it."""

    session_id: str
    arrived: int


class DirectMessage:
    """One message for one viewer."""

    __slots__ = ("after", "data", "gate", "key", "number", "request_id", "reveals")

    def __init__(
        self,
        data: bytes,
        after: int = 0,
        *,
        gate: Gate | None = None,
        key: str | None = None,
        request_id: bytes | None = None,
        reveals: str | None = None,
    ) -> None:
        self.data = data
        self.after = after
        """The last record that must come before it."""
        self.gate = gate
        """In the stream of a connection: the subscription to the session of that record."""
        self.key = key
        """The session of which it is an announcement, which a newer one replaces."""
        self.request_id = request_id
        """Its id, if it is a request to the viewer."""
        self.reveals = reveals
        """The session that the viewer knows of by this message alone."""
        self.number = 0


class Backlog:
    """The size of all that waits for one viewer, in all its streams."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class DirectQueue:
    """The direct messages of one stream, in order."""

    def __init__(self, backlog: Backlog, *, keep_bytes: int = 0) -> None:
        self.waiting: deque[DirectMessage] = deque()
        self._backlog = backlog
        self.number = 0
        """The last one that was taken."""
        self.sent = 0
        """The last one that was taken and sent: its reader has come for more since."""
        self._arrived = 0
        """The last one that the viewer has shown to have."""
        self._was_shown = False
        self._keep_bytes = keep_bytes
        self._kept: deque[DirectMessage] = deque()
        self._kept_bytes = 0

    def put(self, direct: DirectMessage) -> None:
        """Add a message at the end."""
        self._backlog.bytes += len(direct.data)
        self.waiting.append(direct)

    def replace(self, direct: DirectMessage, data: bytes) -> None:
        """Give a waiting message another content."""
        self._backlog.bytes += len(data) - len(direct.data)
        direct.data = data

    def bring_forward(self, end: int) -> None:
        """Let no message wait for a record after this one."""
        for direct in self.waiting:
            direct.after = min(direct.after, end)

    def clear(self) -> list[DirectMessage]:
        """Remove all that waits, and give it."""
        waiting = list(self.waiting)
        self.waiting.clear()
        self._backlog.bytes -= sum(len(direct.data) for direct in waiting)
        return waiting

    def take(self) -> DirectMessage:
        """Take the first one."""
        return self._took(self.waiting.popleft())

    def take_ready(self, is_ready: Callable[[DirectMessage], bool], max_bytes: int) -> list[DirectMessage]:
        """Take the messages that may go now, wherever they stand, as far as they fit."""
        taken: list[DirectMessage] = []
        passed: list[DirectMessage] = []
        size = 0
        while self.waiting and size < max_bytes:
            direct = self.waiting.popleft()
            if is_ready(direct):
                size += len(direct.data)
                taken.append(self._took(direct))
            else:
                passed.append(direct)
        self.waiting.extendleft(reversed(passed))
        return taken

    def confirm(self, is_it: Callable[[DirectMessage], bool]) -> DirectMessage | None:
        """Note that the viewer has shown to have a message, and so all before it; gives the last such message."""
        shown = next((direct for direct in reversed(self._kept) if is_it(direct)), None)
        if shown is not None:
            self._was_shown = True
            self._arrived = max(self._arrived, shown.number)
        return shown

    def reopen(self, *, keeps_ids: bool) -> None:
        """Repeat the messages that may be missing at a viewer that opens its stream again without an id."""
        self.rewind(max(self.sent, self._arrived) if self._was_shown and not keeps_ids else self._arrived)

    def rewind(self, number: int) -> None:
        """Forget messages up to this number, which arrived, and repeat the rest."""
        again = [direct for direct in self._kept if direct.number > number]
        self._kept.clear()
        self._kept_bytes = 0
        self.number = self.sent = self._arrived = min(self.number, number)
        self._backlog.bytes += sum(len(direct.data) for direct in again)
        self.waiting.extendleft(reversed(again))

    def _took(self, direct: DirectMessage) -> DirectMessage:
        self.number += 1
        direct.number = self.number
        self._backlog.bytes -= len(direct.data)
        if self._keep_bytes:
            self._kept.append(direct)
            self._kept_bytes += len(direct.data)
            while self._kept_bytes > self._keep_bytes and len(self._kept) > 1:
                self._kept_bytes -= len(self._kept.popleft().data)
        return direct


class JournalSource(Protocol):
    """A journal as its readers need it; it may be one that another node writes."""

    @property
    def end(self) -> int:
        """The last record that viewers may see."""
        ...

    @property
    def next_end(self) -> int:
        """The last record, written or about to be."""
        ...

    @property
    def epoch(self) -> str:
        """The epoch of cursors into it, now."""
        ...

    @property
    def tail(self) -> JournalTail:
        """The end of it that is in memory."""
        ...

    def has(self, cursor: Cursor) -> bool:
        """Tell whether a cursor names a place of this journal."""
        ...

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        """Read messages that are not in memory; raises OSError."""
        ...


class Subscriber(Protocol):
    """The viewer of a subscription."""

    @property
    def knows_extensions(self) -> bool:
        """Whether it gets each message with its cursor."""
        ...

    @property
    def terminal_names(self) -> dict[str, dict[str, str]]:
        """By session: its own names of terminals that the agent knows by others."""
        ...

    @property
    def spawn(self) -> Callable[[Coroutine[Any, Any, None]], object]:
        """Run something beside."""
        ...

    def drop(self, reason: str) -> None:
        """Close the viewer."""
        ...

    def wake(self, subscription: "Subscription") -> None:
        """Have its streams look at a subscription again."""
        ...


class Subscription:
    """One viewer on one session; without a journal it is a stream that was opened before the session was."""

    def __init__(self, viewer: Subscriber, session_id: str, queue: DirectQueue) -> None:
        self.session_id = session_id
        self.journal: JournalSource | None = None
        self.queue = queue
        self.cursor = 0
        """The last record that was taken, or was not for this viewer."""
        self.arrived = 0
        """The last record that was taken and sent: its reader has come for more since."""
        self.resume_from: Cursor | None = None
        """The cursor that a stream named before the session was opened."""
        self._viewer = viewer
        self._shown = 0
        """The last record that the viewer has shown to have."""
        self._skips: dict[int, None] = {}
        self._part: JournalPart | None = None
        self._fetching = False

    def bind(self, journal: JournalSource, cursor: int) -> None:
        """Begin at a record of a journal; a viewer that begins further back wants to see its own prompts too."""
        if cursor < self.cursor:
            self._skips.clear()
        self.journal = journal
        self.cursor = self.arrived = self._shown = cursor
        self._part = None
        self.queue.bring_forward(journal.next_end)  # the journal may be another one now, with other numbers

    def take_resume_from(self) -> Cursor | None:
        """Give the cursor that a stream named before the session was opened, once."""
        cursor, self.resume_from = self.resume_from, None
        return cursor

    def skip(self, seq: int) -> None:
        """Leave out a record: it is this viewer's own prompt."""
        self._skips[seq] = None
        if len(self._skips) > _MAX_SKIPS:
            del self._skips[next(iter(self._skips))]

    def confirm(self, is_it: Callable[[DirectMessage], bool]) -> None:
        """Note that the viewer has shown to have a direct message, and so all that came before it."""
        direct = self.queue.confirm(is_it)
        if direct is not None:
            self._shown = max(self._shown, min(direct.after, self.arrived))

    def note_sent(self) -> None:
        """Note that everything taken was sent."""
        self.arrived = self.cursor
        self.queue.sent = self.queue.number

    def go_back(self, cursor: Cursor | None, *, keeps_ids: bool) -> None:
        """Begin where a stream that was opened again says, or where it may have missed something."""
        if self.journal is None:
            self.resume_from = cursor or self.resume_from
        elif cursor is None or not self.journal.has(cursor):
            self._go_to(self._shown if keeps_ids else self.arrived)
            self.queue.reopen(keeps_ids=keeps_ids)
        else:
            self._go_to(cursor.seq)
            self._shown = cursor.seq
            if cursor.number is None:
                self.queue.reopen(keeps_ids=True)
            else:
                self.queue.rewind(cursor.number)

    def event_id(self) -> bytes | None:
        """Name where it is, as the id of an event does; None before there is a journal."""
        if self.journal is None:
            return None
        return b"%b.%d.%d" % (self.journal.epoch.encode(), self.cursor, self.queue.number)

    def has_more(self) -> bool:
        """Tell whether a pull would give something now."""
        if self.journal is None:
            return False
        waiting = self.queue.waiting
        if waiting and waiting[0].after <= self.cursor:
            return True
        return not self._fetching and self.cursor < self._limit(self.journal)

    def pull(self, max_bytes: int, *, numbered: bool) -> tuple[list[StreamItem], int]:
        """Take messages that fit, at least one if there is any, and give their size."""
        items: list[StreamItem] = []
        size = 0
        while (journal := self.journal) is not None and size < max_bytes:
            waiting = self.queue.waiting
            if waiting and waiting[0].after <= self.cursor:
                direct = self.queue.take()
                items.append(self._item(journal, MessageRun.of_message(direct.data, self.cursor), numbered=numbered))
                size += len(direct.data)
                continue
            until = self._limit(journal)
            if self.cursor >= until:
                break
            before = self.cursor
            runs, more_bytes = self._take_runs(journal, until, max_bytes - size)
            if not runs and self._fetching:
                break
            if self._skips and next(reversed(self._skips)) > before:
                runs = [part for run in runs for part in self._without_skips(run)]
            if names := self._viewer.terminal_names.get(self.session_id):
                runs = [run.change(lambda lines, names=names: rename_terminals(lines, names)) for run in runs]
            items += [self._item(journal, run, numbered=numbered) for run in runs]
            size += more_bytes
        return items, size

    def _go_to(self, seq: int) -> None:
        self.cursor = self.arrived = seq
        self._part = None

    def _limit(self, journal: JournalSource) -> int:
        """Give the last record that may go out before the next direct message."""
        waiting = self.queue.waiting
        return min(journal.end, waiting[0].after) if waiting else journal.end

    def _take_runs(self, journal: JournalSource, until: int, max_bytes: int) -> tuple[list[MessageRun], int]:
        """Take messages from memory, else from the part that was read; else have the next part read."""
        tail = journal.tail
        before = self.cursor
        if before >= tail.start:
            self._part = None
            with_cursors = self._viewer.knows_extensions
            runs, size, self.cursor = tail.slice(before, until, max_bytes, with_cursors=with_cursors)
            return runs, size
        part = self._part
        if part is None or part.reached <= before:
            self._fetching = True
            self._viewer.spawn(self._fetch(journal, min(tail.start, journal.end)))
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

    def _item(self, journal: JournalSource, run: MessageRun, *, numbered: bool) -> StreamItem:
        return StreamItem(run, journal.epoch.encode(), self.queue.number) if numbered else StreamItem(run)

    async def _fetch(self, journal: JournalSource, until: int) -> None:
        """Read the next part from the disk, beside; the stream is woken then."""
        after = self.cursor
        try:
            part = await journal.read(after, until, with_cursors=self._viewer.knows_extensions)
        except OSError as error:
            self._viewer.drop(f"the journal of session {self.session_id} cannot be read: {error.strerror}")
            return
        finally:
            self._fetching = False
        if self.journal is journal and self.cursor == after:  # else it went elsewhere meanwhile
            self._part = part
            if not part.runs:
                self.cursor = max(self.cursor, part.reached)
        self._viewer.wake(self)
