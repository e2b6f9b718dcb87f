"""A viewer on a session: a cursor into the session's journal, and the direct messages for this viewer.

Nothing of the journal is copied for a viewer. It is at some record, and takes the records that follow: from memory
where they still are, else a part at a time from the disk.

A viewer of another version of ACP than a record is told the record in its own version, by a translator that has seen
the records before. A viewer that goes on at a cursor has its translator fed with the records up to there first, and is
told nothing of them. Cursors are the same for all versions. Where one record becomes several messages, the cursor of
all but the last is that of the record before: none of them is lost if the stream breaks in between.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Protocol

from dragoman.bridge.delivery.direct_queue import DirectMessage, DirectQueue
from dragoman.bridge.delivery.journal import Cursor
from dragoman.bridge.delivery.journal_file import JournalPart
from dragoman.bridge.delivery.runs import JournalTail, MessageRun, StreamItem, slice_runs
from dragoman.bridge.envelope import rename_terminals
from dragoman.bridge.translation import StreamTranslator, Version

_MAX_SKIPS = 1_000
"""Own prompts that are remembered as not to be shown; a viewer that comes back by an older cursor sees them."""


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

    def cursor(self, seq: int) -> str:
        """Name a place of this journal."""
        ...

    def version_at(self, seq: int) -> Version:
        """Return the version of ACP in which a record is."""
        ...

    def is_all_in(self, version: Version) -> bool:
        """Tell whether all records are in one version."""
        ...

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        """Read messages that are not in memory; raises OSError."""
        ...


class Subscriber(Protocol):
    """The viewer of a subscription."""

    @property
    def has_cursors(self) -> bool:
        """Whether it gets each message with its cursor."""
        ...

    @property
    def version(self) -> Version:
        """The version of ACP that it speaks."""
        ...

    def make_translator(self, session_id: str, name: Callable[[int], str]) -> StreamTranslator:
        """Make a translator of the records of a session in the other version."""
        ...

    @property
    def tell_untaken(self) -> Callable[[bytes], bytes] | None:
        """Change lines that have updates which it does not take; None if it takes all."""
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


class StreamTranslation:
    """The translation of one journal for one viewer: the translator, and the record that it has to reach unheard."""

    __slots__ = ("origin", "silent_until", "translator")

    def __init__(self) -> None:
        self.translator: StreamTranslator | None = None
        self.origin = 0
        """The record at which the translator begins."""
        self.silent_until = 0
        """The last record of which the viewer is told nothing, because it has it."""

    def restart(self, cursor: int, origin: int) -> int:
        """Begin anew for a viewer that has all up to a record; return the record to begin after."""
        self.translator = None
        self.origin = min(origin, cursor)
        self.silent_until = cursor
        return self.origin


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
        self.translation = StreamTranslation()

    @property
    def position(self) -> int:
        """The last record that the viewer has."""
        return max(self.cursor, self.translation.silent_until)

    @property
    def lag(self) -> int:
        """The number of records that the viewer has not taken."""
        return 0 if self.journal is None else max(0, self.journal.end - self.position)

    def bind(self, journal: JournalSource, cursor: int, *, has_history: bool = False) -> None:
        """Begin at a record of a journal; a viewer that begins further back wants to see its own prompts too.

        `has_history` says that the viewer has the records before, so that those after it continue them.
        """
        if cursor < self.position:
            self._skips.clear()
        is_other = journal is not self.journal
        self.journal = journal
        self._shown = cursor
        self._begin(cursor, 0 if has_history else cursor)
        if is_other:
            self.queue.bring_forward(journal.next_end)  # the numbers of another journal mean nothing here

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
        return b"%b.%d.%d" % (self.journal.epoch.encode(), self.position, self.queue.number)

    def has_more(self) -> bool:
        """Tell whether a pull would give something now."""
        if self.journal is None:
            return False
        if self._is_direct_due(self.journal):
            return True
        return not self._fetching and self.cursor < self._limit(self.journal)

    def pull(self, max_bytes: int, *, numbered: bool) -> tuple[list[StreamItem], int]:
        """Take messages that fit, at least one if there is any, and give their size."""
        items: list[StreamItem] = []
        size = 0
        while (journal := self.journal) is not None and size < max_bytes:
            if self._is_direct_due(journal):
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
            if before < self.translation.silent_until:
                self._listen(journal, runs)
                size += more_bytes
                continue
            runs = self._adapt(journal, runs, before)
            items += [self._item(journal, run, numbered=numbered) for run in runs]
            size += more_bytes
        if size and not items and self.has_more():  # records that say nothing to this viewer: let others have a turn
            asyncio.get_running_loop().call_soon(self._viewer.wake, self)
        return items, size

    def may_show(self, after: int) -> bool:
        """Tell whether the journal has a record, so that a message behind it may be seen."""
        return self.journal is None or after <= self.journal.end

    def _is_direct_due(self, journal: JournalSource) -> bool:
        """Tell whether the next direct message may go: its record was taken, and is in the journal for good."""
        waiting = self.queue.waiting
        return bool(waiting) and waiting[0].after <= self.cursor and waiting[0].after <= journal.end

    def _adapt(self, journal: JournalSource, runs: list[MessageRun], before: int) -> list[MessageRun]:
        """Return runs as this viewer takes them: without its own prompts, in its words and its version."""
        viewer = self._viewer
        if self._skips and next(reversed(self._skips)) > before:
            runs = [part for run in runs for part in self._without_skips(run)]
        if (tell := viewer.tell_untaken) is not None:
            runs = [run.change(tell) if journal.version_at(run.first) == viewer.version else run for run in runs]
        if names := viewer.terminal_names.get(self.session_id):
            runs = [run.change(lambda lines, names=names: rename_terminals(lines, names)) for run in runs]
        if not journal.is_all_in(viewer.version):
            runs = [told for run in runs for told in self._tell(journal, run)]
        return runs

    def _go_to(self, seq: int) -> None:
        if seq != self.cursor:
            self._begin(seq, self.translation.origin)
        self.arrived = self.cursor
        self._part = None

    def _begin(self, cursor: int, origin: int) -> None:
        """Begin after a record, or before it where a translator has to hear of the records up to there."""
        if self.journal is None or self.journal.is_all_in(self._viewer.version):
            origin = cursor
        self.cursor = self.arrived = self.translation.restart(cursor, origin)
        self._part = None

    def _limit(self, journal: JournalSource) -> int:
        """Give the last record that may go out before the next direct message."""
        waiting = self.queue.waiting
        limit = min(journal.end, waiting[0].after) if waiting else journal.end
        silent_until = self.translation.silent_until
        return min(limit, silent_until) if self.cursor < silent_until else limit

    def _wants_cursors(self, journal: JournalSource) -> bool:
        """Tell whether records are taken with their cursors; a translation has them added behind it."""
        return self._viewer.has_cursors and journal.is_all_in(self._viewer.version)

    def _listen(self, journal: JournalSource, runs: list[MessageRun]) -> None:
        """Have the translator hear records that the viewer has."""
        for run in runs:
            if journal.version_at(run.first) != self._viewer.version:
                self._translator(journal).translate(run.lines, run.first)

    def _tell(self, journal: JournalSource, run: MessageRun) -> Iterator[MessageRun]:
        """Return a run in the viewer's version, with its cursors."""
        told: Iterator[MessageRun] = iter([run])
        if journal.version_at(run.first) != self._viewer.version:
            told = _translate(run, self._translator(journal))
        if not self._viewer.has_cursors:
            return told
        epoch = journal.epoch.encode()
        return (each.with_cursors(epoch) for each in told)

    def _translator(self, journal: JournalSource) -> StreamTranslator:
        translation = self.translation
        if translation.translator is None:
            translation.translator = self._viewer.make_translator(self.session_id, journal.cursor)
        return translation.translator

    def _take_runs(self, journal: JournalSource, until: int, max_bytes: int) -> tuple[list[MessageRun], int]:
        """Take messages from memory, else from the part that was read; else have the next part read."""
        tail = journal.tail
        before = self.cursor
        if before >= tail.start:
            self._part = None
            with_cursors = self._wants_cursors(journal)
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
            part = await journal.read(after, until, with_cursors=self._wants_cursors(journal))
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


def _translate(run: MessageRun, translator: StreamTranslator) -> Iterator[MessageRun]:
    """Return the messages in the place of those of a run; messages that have one each in their place stay together."""
    told = translator.translate(run.lines, run.first)
    if told is run.lines:
        yield run
        return
    if isinstance(told, bytes):
        yield MessageRun(told, run.first, run.time_ms, count=run.last - run.first + 1)
        return
    together: list[bytes] = []
    for seq, messages in enumerate(told, run.first):
        if len(messages) != 1 and together:
            yield _join(together, seq - 1, run.time_ms)
            together = []
        for message in messages[:-1]:
            yield _join([message], seq - 1, run.time_ms)
        if len(messages) > 1:
            yield _join(messages[-1:], seq, run.time_ms)
        else:
            together += messages
    if together:
        yield _join(together, run.last, run.time_ms)


def _join(messages: list[bytes], last: int, time_ms: int) -> MessageRun:
    return MessageRun(b"\n".join([*messages, b""]), last - len(messages) + 1, time_ms, count=len(messages))
