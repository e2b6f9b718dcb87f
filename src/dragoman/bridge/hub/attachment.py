"""A viewer on a session: a cursor into its journal, and what is meant for this viewer alone.

Nothing of the journal is copied for a viewer. It is at some record, and takes what follows: from memory where that
still is, else a block at a time from the disk. A direct message goes out once the cursor has reached the record that
it must follow, and no record beyond goes out before it.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from dragoman.bridge.hub.event import Event
from dragoman.bridge.hub.history import Block
from dragoman.bridge.hub.lane import Direct, Lane
from dragoman.bridge.hub.terminals import translate

if TYPE_CHECKING:
    from dragoman.bridge.hub.session import Session
    from dragoman.bridge.hub.viewer import Viewer

_MAX_SKIPS = 1_000
"""Own prompts that are remembered as not to be shown; whoever comes back by an older cursor sees them."""


class Attachment:
    """One viewer on one session; without a session it is a stream that was opened before the session was."""

    def __init__(self, viewer: "Viewer", session_id: str) -> None:
        self.viewer = viewer
        self.session_id = session_id
        self.session: Session | None = None
        self.cursor = 0
        """The last record that was taken, or was none of its business."""
        self.arrived = 0
        """The last record that was taken and sent: whoever takes has come for more since."""
        self._shown = 0
        """The last record that the viewer has shown to have."""
        self.last_active = 0
        """Grows with each prompt: of several viewers the latest is asked first."""
        self.resume_from: tuple[str, int] | None = None
        """Epoch and record that a stream named before the session was opened."""
        keep_bytes = viewer.settings.viewer_window_bytes if viewer.over_http else 0
        self.lane = Lane(viewer.backlog, keep_bytes=keep_bytes)
        self._skips: dict[int, None] = {}
        self._last_skip = 0
        self._block: Block | None = None
        self._fetching = False

    def bind(self, session: "Session", cursor: int) -> None:
        """Begin at a record of a session's journal; whoever begins further back wants to see what it said itself."""
        if cursor < self.cursor:
            self._skips.clear()
        self.session = session
        self.cursor = self.arrived = self._shown = cursor
        self._block = None
        self.lane.bring_forward(session.journal.next_end)  # its journal may be another one now, with other numbers

    def take_resume_from(self) -> tuple[str, int] | None:
        """Give the place that a stream named before the session was opened, once."""
        place, self.resume_from = self.resume_from, None
        return place

    def skip(self, seq: int) -> None:
        """Leave out a record: it is what this viewer said itself."""
        self._skips[seq] = None
        self._last_skip = seq
        if len(self._skips) > _MAX_SKIPS:
            del self._skips[next(iter(self._skips))]

    def put(self, data: bytes, after: int, ask_id: bytes | None = None) -> None:
        """Queue a direct message."""
        self.lane.put(Direct(data, after, ask_id=ask_id))

    def confirm(self, is_it: Callable[[Direct], bool]) -> None:
        """Take note that the viewer has shown to have a direct message, and so all that came before it."""
        direct = self.lane.confirm(is_it)
        if direct is not None:
            self._shown = max(self._shown, min(direct.after, self.arrived))

    def note_sent(self) -> None:
        """Take note that whoever takes has sent what it took."""
        self.arrived = self.cursor
        self.lane.sent = self.lane.number

    def move_to(self, seq: int, number: int | None) -> None:
        """Go back to a place that was named by a viewer; without a number, whatever it may not have comes again."""
        self._go_to(seq)
        self._shown = seq
        if number is None:
            self.lane.reopen(keeps_ids=True)
        else:
            self.lane.rewind(number)

    def reopen(self, *, keeps_ids: bool) -> None:
        """Go back for a viewer that names no place: one that keeps ids has seen nothing of the last stream."""
        self._go_to(self._shown if keeps_ids else self.arrived)
        self.lane.reopen(keeps_ids=keeps_ids)

    def _go_to(self, seq: int) -> None:
        self.cursor = self.arrived = seq
        self._block = None

    def place(self) -> bytes | None:
        """Name where it is, as the id of an event does; None before there is a session."""
        return None if self.session is None else self._event_id(self.cursor)

    def has_more(self) -> bool:
        """Tell whether a pull would give something now."""
        if self.session is None:
            return False
        waiting = self.lane.waiting
        if waiting and waiting[0].after <= self.cursor:
            return True
        return not self._fetching and self.cursor < self._limit()

    def pull(self, max_bytes: int, *, numbered: bool) -> tuple[list[Event], int]:
        """Take what is there and fits, at least one if any, and say its size."""
        events: list[Event] = []
        size = 0
        while self.session is not None and size < max_bytes:
            waiting = self.lane.waiting
            if waiting and waiting[0].after <= self.cursor:
                direct = self.lane.take()
                events.append(Event(direct.data, self._event_id(self.cursor) if numbered else None))
                size += len(direct.data)
                continue
            until = self._limit()
            if self.cursor >= until:
                break
            more, more_bytes = self._messages(until, max_bytes - size, numbered=numbered)
            if not more and self._fetching:
                break
            if names := self.viewer.terminal_names.get(self.session_id):
                more = [Event(translate(event.data, names), event.id) for event in more]
            events = events + more if events else more
            size += more_bytes
        return events, size

    def _limit(self) -> int:
        assert self.session is not None  # noqa: S101 -- both callers have looked
        end = self.session.journal.end
        waiting = self.lane.waiting
        return min(end, waiting[0].after) if waiting else end

    def _messages(self, until: int, max_bytes: int, *, numbered: bool) -> tuple[list[Event], int]:
        assert self.session is not None  # noqa: S101 -- its caller has looked
        tail = self.session.journal.tail
        before = self.cursor
        if before >= tail.start:
            self._block = None
            events, size, reached = tail.slice(before, until, max_bytes, marked=self.viewer.marked)
            self.cursor = reached
            if numbered or self._last_skip > before:
                return self._finish(events, tail.places(before, reached), numbered=numbered), size
            return events, size
        if self._block is None or self._block.reached <= before:
            self._fetch(min(tail.start, self.session.journal.end))
            return [], 0
        return self._from_block(self._block, until, max_bytes, numbered=numbered)

    def _from_block(self, block: "Block", until: int, max_bytes: int, *, numbered: bool) -> tuple[list[Event], int]:
        events: list[Event] = []
        seqs: list[int] = []
        size = 0
        reached = min(block.reached, until)
        for seq, event in zip(block.seqs, block.events, strict=True):
            if seq <= self.cursor:
                continue
            if seq > until:
                break
            if size >= max_bytes:
                reached = seqs[-1]
                break
            events.append(event)
            seqs.append(seq)
            size += len(event.data)
        self.cursor = reached
        return self._finish(events, seqs, numbered=numbered), size

    def _finish(self, events: list[Event], seqs: list[int], *, numbered: bool) -> list[Event]:
        pairs = zip(events, seqs, strict=True)
        if self._skips:
            pairs = [(event, seq) for event, seq in pairs if seq not in self._skips]
        if not numbered:
            return [event for event, _ in pairs]
        return [Event(event.data, self._event_id(seq)) for event, seq in pairs]

    def _event_id(self, seq: int) -> bytes:
        assert self.session is not None  # noqa: S101 -- nothing is taken without
        return b"%b.%d.%d" % (self.session.journal.epoch.encode(), seq, self.lane.number)

    def _fetch(self, until: int) -> None:
        self._fetching = True
        self.viewer.spawn(self._read(until))

    async def _read(self, until: int) -> None:
        session, after = self.session, self.cursor
        if session is None:
            return
        read: Callable[..., Awaitable[Block]] = session.shelf.read
        try:
            block = await read(session.journal, after, until, marked=self.viewer.marked)
        except FileNotFoundError as error:
            session.journal.fail(error, "read")
            block = Block([], [], until)  # what somebody took away is no reason to be without the rest
        except OSError as error:
            self.viewer.drop(f"the journal of session {self.session_id} cannot be read: {error.strerror}")
            return
        finally:
            self._fetching = False
        if self.session is session and self.cursor == after:  # else it went elsewhere meanwhile
            self._block = block
            if not block.events:
                self.cursor = max(self.cursor, block.reached)
        self.viewer.wake(self)
