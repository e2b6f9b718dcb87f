"""One client of the bridge: an editor, a program, or a page."""

import asyncio
import uuid
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.bridge.envelope import make_error, make_result
from dragoman.bridge.hub.attachment import Attachment
from dragoman.bridge.hub.event import Event
from dragoman.bridge.hub.lane import Backlog, Direct, Lane
from dragoman.bridge.hub.outlet import Outlet
from dragoman.bridge.hub.place import Place, read_place
from dragoman.bridge.problem import BridgeProblem
from dragoman.errors import ErrorCode

if TYPE_CHECKING:
    from dragoman.bridge.hub.abilities import Abilities
    from dragoman.bridge.hub.ask import Ask
    from dragoman.bridge.hub.hub import Hub

_MAX_BURST = 16
"""Windows of answers, for one that waits for them: it takes them as soon as all that it said just now is answered."""

_MAX_EXPECTED = 1_000
"""Streams that a viewer opens for sessions before it opens those."""


class TooManyViewers(BridgeProblem):
    """No more viewers are let in."""

    def __init__(self, agent: str, limit: int) -> None:
        self.agent = agent
        self.limit = limit
        super().__init__(f"{limit} viewers are connected to {agent}, which is the limit; close some, then try again")


class Viewer:
    """Speaks ACP with the bridge as if it were the agent."""

    def __init__(self, hub: "Hub", *, read_only: bool) -> None:
        self.id = str(uuid.uuid4())
        """Over HTTP this is the Acp-Connection-Id."""
        self.closed = asyncio.Event()
        """Set once it is gone, also when it is the hub that let it go."""
        self.close_reason: str | None = None
        """Why the hub let it go, in words; None if it did not."""
        self.read_only = read_only
        self.settings = hub.settings
        self.over_http = False
        self.keeps_ids = False
        """Whether it has named an event as the last that it has, and would do so again."""
        self.abilities: Abilities | None = None
        """What it said that it can do; None before `initialize`."""
        self.greeting: Raw | None = None
        """How it said so, unless it may only read: the agent is told what can be done by those who are there."""
        self.attachments: dict[str, Attachment] = {}
        self.asked: dict[bytes, Ask] = {}
        """Requests to it that it has not answered, by id."""
        self.calls: dict[bytes, bytes] = {}
        """Requests of it that are under way, by its id, with the id at the agent once they are there."""
        self.terminal_names: dict[str, dict[str, str]] = {}
        """By session: what it calls terminals that the agent calls otherwise."""
        self._wishes: dict[bytes, str] = {}
        self.is_greeting = False
        """Whether its `initialize` waits for the agent."""
        self.held: list[bytes] = []
        """What it said meanwhile."""
        self._hub = hub
        self.backlog = Backlog()
        self._lane = Lane(self.backlog)
        self._news: dict[str, Direct] = {}
        self._ready: dict[Attachment, None] = {}
        self._outlet: Outlet | None = None
        self._session_outlets: dict[str, Outlet] = {}

    @property
    def marked(self) -> bool:
        """Whether it wants to know where each message stands in its journal."""
        return self.abilities is not None and self.abilities.marked

    async def greet(self, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP, which has to be `initialize`."""
        self.over_http = True
        self._lane = Lane(self.backlog, keep_bytes=self.settings.viewer_window_bytes)
        return await self._hub.desk.greet(self, line)

    def receive(self, line: bytes) -> None:
        """Take any message; what is wrong with it is answered as JSON-RPC does."""
        if not self.closed.is_set():
            self._hub.desk.receive(self, line)

    def outlet(self) -> Outlet:
        """Everything for this viewer, as one stream; a stream opened before ends."""
        return self._replace(Outlet(self._pull_all, self._has_any))

    def connection_outlet(self, last_event_id: str | None) -> Outlet:
        """What belongs to no session, or answers the request that opens one."""
        place = self._read_place(last_event_id)
        if place is not None and place.epoch == self.id and place.number is not None:
            self._lane.rewind(place.number)
        else:
            self._lane.reopen(keeps_ids=self.keeps_ids)
        return self._replace(Outlet(self._pull_connection, self._has_direct, place=self._place))

    def session_outlet(self, session_id: str, last_event_id: str | None) -> Outlet | None:
        """What belongs to one session; None if there is none that this viewer could have or open."""
        attachment = self._attachment(session_id)
        if attachment is None:
            return None
        self.note_use(session_id)
        self._go_back(attachment, self._read_place(last_event_id))
        pull = partial(self._pull_session, attachment)

        def ended() -> None:
            if attachment.session is None and self._session_outlets.get(session_id) is outlet:
                self._forget(session_id)  # it was only expected, and nobody waits for it any more
            self._wake_connection()

        outlet = Outlet(pull, attachment.has_more, ended, attachment.place)
        older, self._session_outlets[session_id] = self._session_outlets.get(session_id), outlet
        if older is not None:
            older.end()
        self._wake_connection()
        return outlet

    def knows(self, session_id: str) -> bool:
        """Tell whether this viewer is on a session, or has asked to be."""
        return session_id in self.attachments or session_id in self._open_wishes().values()

    def can_use(self, session_id: str) -> bool:
        """Tell whether it knows a session, or could have learned of it here."""
        return self.knows(session_id) or session_id in self._hub.sessions or session_id in self._hub.shelf.known

    def note_wish(self, key: bytes, session_id: str) -> None:
        """Take note that one of its requests, which is under way, wants a session opened."""
        self._wishes = {**self._open_wishes(), key: session_id}

    async def close(self) -> None:
        """Let it go: it is detached everywhere, and what it asked for goes on."""
        self._hub.let_go(self)

    def drop(self, reason: str) -> None:
        """Let it go for a reason."""
        if not self.closed.is_set():
            self.close_reason = reason
            self._hub.let_go(self)

    def end(self) -> None:
        """End all its streams, and wake whoever waits for that."""
        self.closed.set()
        for outlet in (self._outlet, *self._session_outlets.values()):
            if outlet is not None:
                outlet.end()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside."""
        self._hub.spawn(work)

    def send(
        self,
        data: bytes,
        attachment: Attachment | None = None,
        after: int | None = None,
        *,
        ask_id: bytes | None = None,
    ) -> None:
        """Queue a message, in the stream of a session if there is one and behind what that has so far."""
        if attachment is not None and attachment.session is None:
            attachment = None
        if not self._takes_more(attachment):
            return
        if attachment is None or attachment.session is None:
            self._lane.put(Direct(data, ask_id=ask_id))
            self._wake_connection()
        else:
            attachment.put(data, attachment.session.journal.next_end if after is None else after, ask_id)
            self.wake(attachment)

    def open_session(self, data: bytes, attachment: Attachment, after: int, *, is_new: bool = False) -> None:
        """Queue the answer to a request that opened a session: over HTTP it belongs to the connection."""
        if not self.over_http:
            self.send(data, attachment, after)
            return
        if self._takes_more(None):
            self._lane.put(Direct(data, after, gate=attachment, reveals=attachment.session_id if is_new else None))
            self._wake_connection()

    def send_news(self, session_id: str, data: bytes) -> None:
        """Queue how a session is now, in place of older news of it that still waits."""
        waiting = self._news.get(session_id)
        if waiting is not None:
            self._lane.replace(waiting, data)
            return
        self._news[session_id] = direct = Direct(data, key=session_id)
        self._lane.put(direct)
        self._wake_connection()

    def answer(self, id_: bytes, result: Any, attachment: Attachment | None = None) -> None:
        """Answer a request of it."""
        self.send(make_result(id_, result), attachment)

    def refuse(self, id_: bytes, code: ErrorCode, problem: Any, attachment: Attachment | None = None) -> None:
        """Answer a request of it with an error in words."""
        self.send(make_error(id_, code, problem), attachment)

    def note_answer(self, ask_id: bytes, attachment: Attachment | None) -> None:
        """Take note that it has the request that it answers."""
        lane = self._lane if attachment is None else attachment
        lane.confirm(lambda direct: direct.ask_id == ask_id)

    def note_use(self, session_id: str) -> None:
        """Take note that it has the answer that told it of a session."""
        self._lane.confirm(lambda direct: direct.reveals == session_id)

    def note_step(self, session_id: str) -> None:
        """Take note that it goes on in a session, or is done with it: it has the end of its last turn there."""
        if attachment := self.attachments.get(session_id):
            attachment.confirm(lambda _: True)

    def has_room(self) -> bool:
        """Tell whether it takes what it is sent, so that it may be sent what it could do without."""
        return self.backlog.bytes < self.settings.viewer_window_bytes // 2

    def wake(self, attachment: Attachment) -> None:
        """Have its streams look at a session again."""
        if self.over_http:
            if outlet := self._session_outlets.get(attachment.session_id):
                outlet.wake()
        else:
            self._ready[attachment] = None
            if self._outlet is not None:
                self._outlet.wake()

    def attach(self, session_id: str) -> Attachment:
        """Make a place for a session, or give the one there is."""
        attachment = self.attachments.get(session_id)
        if attachment is None:
            attachment = self.attachments[session_id] = Attachment(self, session_id)
        return attachment

    def detach(self, session_id: str) -> None:
        """Forget a session; what was said to this viewer alone still reaches it."""
        attachment = self.attachments.pop(session_id, None)
        if attachment is not None:
            self._ready.pop(attachment, None)
            for direct in attachment.lane.clear():
                self._lane.put(Direct(direct.data))
            self._wake_connection()
            if outlet := self._session_outlets.pop(session_id, None):
                outlet.end()

    def fault(self, stall_s: float) -> str | None:
        """Say why it should be let go, if it should."""
        outlets = [outlet for outlet in (self._outlet, *self._session_outlets.values()) if outlet and not outlet.ended]
        if any(outlet.stalled_s() > stall_s for outlet in outlets):
            return f"it took nothing for {stall_s:g} s although something waited for it"
        return None

    def _takes_more(self, attachment: Attachment | None) -> bool:
        """Tell whether it may be sent more; one that lets answers pile up is let go."""
        window = self.settings.viewer_window_bytes
        if self.closed.is_set() or self.backlog.bytes <= window:
            return not self.closed.is_set()
        outlet = self._outlet
        if attachment is not None and self.over_http:
            outlet = self._session_outlets.get(attachment.session_id)
        if outlet is not None and outlet.is_hungry and self.backlog.bytes <= _MAX_BURST * window:
            return True
        self.drop(f"it left more than {window} bytes of answers untaken")
        return False

    def _attachment(self, session_id: str) -> Attachment | None:
        known = self.attachments.get(session_id)
        if known is not None:
            return known
        expected = sum(attachment.session is None for attachment in self.attachments.values())
        if expected >= _MAX_EXPECTED or not self._hub.could_open(session_id):
            return None
        return self.attach(session_id)

    def _forget(self, session_id: str) -> None:
        self.attachments.pop(session_id, None)
        self._session_outlets.pop(session_id, None)

    def _open_wishes(self) -> dict[bytes, str]:
        return {key: session_id for key, session_id in self._wishes.items() if key in self.calls}

    def _read_place(self, last_event_id: str | None) -> Place | None:
        place = read_place(last_event_id)
        self.keeps_ids = self.keeps_ids or place is not None
        return place

    def _go_back(self, attachment: Attachment, place: Place | None) -> None:
        if attachment.session is None:
            if place is not None:
                attachment.resume_from = place.epoch, place.seq
        elif place is not None and attachment.session.has_place(place.epoch, place.seq):
            attachment.move_to(place.seq, place.number)
        else:
            attachment.reopen(keeps_ids=self.keeps_ids)

    def _replace(self, outlet: Outlet) -> Outlet:
        if self._outlet is not None:
            self._outlet.end()
        self._outlet = outlet
        return outlet

    def _wake_connection(self) -> None:
        if self._outlet is not None:
            self._outlet.wake()

    def _is_ready(self, direct: Direct) -> bool:
        if direct.gate is None or direct.gate.arrived >= direct.after:
            return True
        # Without a stream for the session nobody would ever take what the answer waits for.
        outlet = self._session_outlets.get(direct.gate.session_id)
        return outlet is None or outlet.ended

    def _has_direct(self) -> bool:
        return any(map(self._is_ready, self._lane.waiting))

    def _has_any(self) -> bool:
        return bool(self._lane.waiting) or any(attachment.has_more() for attachment in self._ready)

    def _place(self) -> bytes:
        return b"%b.0.%d" % (self.id.encode(), self._lane.number)

    def _pull_connection(self, max_bytes: int) -> list[Event]:
        own = self.id.encode()
        self._lane.sent = self._lane.number
        return [Event(direct.data, b"%b.0.%d" % (own, direct.number)) for direct in self._take_direct(max_bytes)]

    def _take_direct(self, max_bytes: int) -> list[Direct]:
        if not self._lane.waiting:
            return []
        taken = self._lane.take_ready(self._is_ready, max_bytes)
        for direct in taken:
            if direct.key is not None:
                self._news.pop(direct.key, None)
        return taken

    def _pull_session(self, attachment: Attachment, max_bytes: int) -> list[Event]:
        attachment.note_sent()
        events, _ = attachment.pull(max_bytes, numbered=True)
        if not events:
            attachment.note_sent()
        if self._lane.waiting:
            self._wake_connection()
        return events

    def _pull_all(self, max_bytes: int) -> list[Event]:
        directs = self._take_direct(max_bytes)
        events = [Event(direct.data) for direct in directs]
        size = sum(len(event.data) for event in events)
        if self._lane.waiting:
            return events
        for attachment in list(self._ready):
            if size >= max_bytes:
                break
            more, more_bytes = attachment.pull(max_bytes - size, numbered=False)
            events = events + more if events else more
            size += more_bytes
            del self._ready[attachment]
            if attachment.has_more():
                self._ready[attachment] = None  # behind the others: each gets its turn
        return events
