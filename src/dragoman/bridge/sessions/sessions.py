"""The sessions of one agent: open sessions, and sessions that have only a journal.

Every lookup of a session by its id uses `ServedSessions.find`. A session that no viewer has open leaves memory
(`release_unused`), and `open_stored` reads its journal again. Each journal is opened by one task at a time.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from weakref import WeakValueDictionary

from msgspec import Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import (
    AgentCall,
    AgentFailure,
    CallAnswer,
    NoAnswerError,
    SilenceWatch,
    silence_failure,
)
from dragoman.bridge.delivery import EarlierRun, History, StoredHistory
from dragoman.bridge.sessions.announcements import Announcements
from dragoman.bridge.sessions.labels import SessionLabels
from dragoman.bridge.sessions.lists import SessionLists
from dragoman.bridge.sessions.phase import RELEASABLE, SessionPhase
from dragoman.bridge.sessions.questions import Questions
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.sessions.subagents import Subagents
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.tasks import Waiters, Work
from dragoman.bridge.viewers import Delivery, Viewer, ViewerRequest
from dragoman.errors import ErrorCode, RpcError

MAX_EARLY_LINES = 1_000
MAX_EARLY_BYTES = 1024 * 1024
"""Updates before the answer to session/new are few, such as a list of commands. More come from an unknown session."""

_RELEASE_PAUSE_S = 0.1
"""Pause between the end of a session's use and its release. By then its history is synced, and its viewer has read."""

_MAX_DEPTH = 32
"""Depth of subagents at which the search for a parent ends."""

_log = logging.getLogger("dragoman.bridge")


class EarlyUpdates:
    """Updates of unknown sessions. Some agents send them before the answer to session/new.

    They are held until their session is known. Beyond the limits the oldest are dropped.
    """

    def __init__(self) -> None:
        self._lines: deque[tuple[str, bytes]] = deque()
        self._bytes = 0

    def put(self, session_id: str, line: bytes) -> None:
        """Hold an update."""
        self._lines.append((session_id, line))
        self._bytes += len(line)
        while len(self._lines) > MAX_EARLY_LINES or self._bytes > MAX_EARLY_BYTES:
            self._bytes -= len(self._lines.popleft()[1])

    def pop(self, session_id: str) -> list[bytes]:
        """Remove and return the updates of a session."""
        found = [line for held_for, line in self._lines if held_for == session_id]
        if found:
            self._lines = deque(held for held in self._lines if held[0] != session_id)
            self._bytes -= sum(map(len, found))
        return found

    def clear(self) -> None:
        """Drop all updates."""
        self._lines.clear()
        self._bytes = 0


class ServedSessions:
    """The sessions of one agent that are open in this bridge."""

    def __init__(
        self,
        limits: AgentLimits,
        *,
        host: AgentHost,
        delivery: Delivery,
        labels: SessionLabels,
        announcements: Announcements,
        questions: Questions,
        start: Callable[[Work], None],
    ) -> None:
        self.by_id: dict[str, ServedSession] = {}
        self.host = host
        self.labels = labels
        self.questions = questions
        self.announcements = announcements
        self.start = start
        """Runs a coroutine as a task, with its first step now."""
        self.early = EarlyUpdates()
        self.loads: dict[str, Waiters] = {}
        """Sessions that a load is opening, with the later loads that wait for its end."""
        self.on_added: Callable[[ServedSession], None] | None = None
        """Called with each session that is opened here."""
        self.lists = SessionLists(self.by_id, delivery.histories, labels)
        self.subagents = Subagents(self, delivery)
        self._limits = limits
        self._delivery = delivery
        self._histories = delivery.histories
        self._is_releasing = False
        self._dirty: dict[ServedSession, None] = {}
        """Sessions whose journals are written at the end of this tick."""
        self._reading: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Held while the journal of a session is opened."""

    def find(self, session_id: str | None) -> ServedSession | None:
        """Return an open session by its id."""
        return None if session_id is None else self.by_id.get(session_id)

    def session_of_prompt(self, agent_id: bytes) -> ServedSession | None:
        """Return the session in which the agent, of version 2, has inserted a prompt of version 1."""
        if not agent_id:
            return None
        return next((each for each in self.by_id.values() if each.turns.is_inserted(agent_id)), None)

    def knows(self, session_id: str) -> bool:
        """Return whether a session is open here, or has a journal here."""
        return session_id in self.by_id or session_id in self._histories.stored

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Return whether a session is a subagent of another one, at any depth."""
        parent = self.labels.of(session_id).parent
        for _ in range(_MAX_DEPTH):
            if parent is None or parent == of:
                return parent == of
            parent = self.labels.of(parent).parent
        return False

    def add(
        self,
        session_id: str,
        params: dict[str, Raw],
        history: History,
        phase: SessionPhase,
        earlier: EarlierRun | None = None,
    ) -> ServedSession:
        """Add a session, with the updates that came before it was known."""
        session = ServedSession(self, session_id, params, history, phase, earlier=earlier or EarlierRun())
        history.reader = session
        self.by_id[session_id] = session
        if self.on_added is not None:
            self.on_added(session)
        session.info.label = self.labels.of(session_id)
        for line in self.early.pop(session_id):
            session.receive(line)
        session.changed()
        return session

    def settle(self, session: ServedSession) -> None:
        """Replace an older journal of a session that was opened with the new one."""
        self._histories.settle(session.history)

    def drop(self, session: ServedSession) -> None:
        """Forget a session that could not be opened, or was deleted."""
        self._forget(session)
        for viewer in list(session.subscriptions):
            self.unsubscribe(viewer, session)
        problem = f"session {session.id} could not be opened, or was deleted; start a new session"
        session.refuse_waiting(RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem))
        session.turns.queue.clear()
        session.history.delete()
        if session.id not in self._histories.stored:
            self.announcements.session_deleted(session)

    def release(self, session: ServedSession, problem: str) -> None:
        """Forget a session that another node may own now. Its viewers stay subscribed, for the caller to move."""
        self.subagents.forget(session.id)
        self._forget(session)
        session.refuse_waiting(RpcError(ErrorCode.INTERNAL_ERROR, problem))
        session.turns.withdraw()
        if session.turns.queue:
            session.turns.queue.clear()
            session.announce_queue()
        session.history.drop()

    def release_soon(self) -> None:
        """Release unused sessions soon, because one was closed or left. Many may be closed before the next sweep."""
        if not self._is_releasing:
            self._is_releasing = True
            self._delivery.spawn(self._release_later())

    async def _release_later(self) -> None:
        await asyncio.sleep(_RELEASE_PAUSE_S)
        self._is_releasing = False
        self.release_unused()

    def release_unused(self) -> None:
        """Release sessions from memory that no viewer has open and whose journals are enough to open them again."""
        for session in [each for each in self.by_id.values() if each.phase in RELEASABLE]:
            viewer = session.closed_by
            subscription = None if viewer is None else session.subscriptions.get(viewer)
            # A viewer with our extensions shows a closed session until it sends leave. Other viewers are done with it.
            if viewer is not None and subscription is not None and not viewer.knows_extensions:
                if subscription.lag or subscription.queue.waiting:
                    continue
                self.unsubscribe(viewer, session)
            if session.is_unused and not self.subagents.is_followed(session):
                self._release_unused(session)

    def _release_unused(self, session: ServedSession) -> None:
        children = self.subagents.of(session)
        leaving = (*children, session)
        if any(child.subscriptions for child in children) or not all(each.history.is_complete for each in leaving):
            return
        self.subagents.forget(session.id)
        for each in leaving:
            stored = each.as_stored()
            self._forget(each)
            self._histories.put_away(each.history, stored)

    def _forget(self, session: ServedSession) -> None:
        """Remove a session from memory. Its late answers change nothing."""
        self.by_id.pop(session.id, None)
        session.phase = SessionPhase.DELETED
        self.questions.forget_session(session)
        self._dirty.pop(session, None)

    def delete(self, session_id: str) -> None:
        """Forget a session for good, with its journal and its label."""
        self.subagents.forget(session_id)
        for child in self.labels.children_of(session_id):
            self.delete(child)
        self._histories.delete(session_id)
        self._delivery.spawn(self._forget_label(session_id))
        session = self.by_id.get(session_id)
        if session is not None:
            self.drop(session)

    async def change_label(self, session_id: str, **changes: str | bool | None) -> bool:
        """Change the label of a session, and announce it. Return False if it cannot be written."""
        try:
            label = await self.labels.change(session_id, **changes)
        except OSError as error:
            _log.warning("the label of session %s is not written: %s", session_id, error.strerror)
            return False
        session = self.by_id.get(session_id)
        if session is not None:
            session.set_label(label)
        elif (stored := self._histories.stored.get(session_id)) is not None:
            self.announce_stored(stored)
        return True

    async def record_origin(self, session_id: str, origin: str) -> None:
        """Store in a session's label which program started it."""
        await self.change_label(session_id, origin=origin)

    def unsubscribe(self, viewer: Viewer, session: ServedSession) -> None:
        """Unsubscribe a viewer from a session, and send its open questions to other viewers."""
        session.unsubscribe(viewer)
        self.release_soon()
        viewer.outbox.unsubscribe(session.id)
        if viewer.translator is not None:
            viewer.translator.forget(session.id)
        self.questions.viewer_left(viewer, session)
        for child in self.subagents.of(session):
            if viewer in child.subscriptions:
                self.unsubscribe(viewer, child)

    def viewer_left(self, viewer: Viewer) -> None:
        """Unsubscribe a viewer from all sessions."""
        for session_id in viewer.outbox.subscriptions:
            session = self.by_id.get(session_id)
            if session is not None:
                session.unsubscribe(viewer)

    def agent_ended(self, failure: AgentFailure) -> None:
        """Handle the end of the agent, which has lost all sessions."""
        self.early.clear()
        for session in self.by_id.values():
            if session.agent_ended(failure.data()):
                self._delivery.sync_soon(session.history)

    # Requests to the agent.

    async def pass_on(self, request: ViewerRequest, session: ServedSession | None = None) -> CallAnswer:
        """Send a request to the agent once it has the session. Return the answer. Raises NoAnswerError, RpcError."""
        if session is not None:
            return await session.pass_on(request)
        return await request.send_to(await self.host.link_for(request.agent_version))

    def watch_silence(
        self, call: AgentCall, request: ViewerRequest | None, session: ServedSession | None
    ) -> SilenceWatch:
        """Watch an agent while it opens a session. If it is silent for too long, refuse the waiting requests.

        If the session is unknown, any message of the agent is a sign of life.
        """
        silence_s = self._limits.open_timeout_s

        def signs() -> object:
            if self.questions.wait_for(None if request is None else request.viewer, session):
                return object()  # the agent waits for the user, so it is not silent
            return self.host.read_count if session is None else session.received

        def fall_silent() -> None:
            call.is_awaited = False
            error = NoAnswerError(silence_failure(call.method, session.id if session else None, silence_s))
            if session is not None:
                self.loads.get(session.id, Waiters()).refuse(error)
                session.refuse_waiting(error)
                session.changed()
            if request is not None:
                if session is not None and request.viewer in session.subscriptions and not request.is_over:
                    self.unsubscribe(request.viewer, session)
                request.fail(error.failure.data())

        return SilenceWatch(silence_s, signs, fall_silent)

    def withdraw(self, viewer: Viewer, id_: bytes) -> None:
        """Answer a request that was cancelled before the agent received it."""
        for session in self.by_id.values():
            if session.turns.withdraw(viewer, id_) or session.withdraw_waiting(viewer, id_):
                return

    def wake_watched(self) -> None:
        """Reopen sessions that have viewers at a restarted agent. Closed sessions stay closed."""
        for session in list(self.by_id.values()):
            is_away = session.phase is SessionPhase.ASLEEP
            if is_away and session.subscriptions and session.info.label.parent is None:
                session.wake()

    def wake_after_login(self) -> None:
        """Reopen the sessions that the agent refused before a login."""
        for session in list(self.by_id.values()):
            if session.login is not None and session.subscriptions:
                session.wake()

    # Sessions that have only a journal.

    def opening_lock(self, session_id: str) -> asyncio.Lock:
        """Return the lock that is held while the journal of a session is opened or replaced."""
        return self._reading.setdefault(session_id, asyncio.Lock())

    async def open_stored(self, session_id: str) -> ServedSession | None:
        """Return an open session, or open its journal. Return None if there is none. Raises OSError, DragomanError.

        The lock is needed because between nodes a prompt opens sessions as well as a load. Two open journals of a
        session would split its history.
        """
        lock = self.opening_lock(session_id)
        async with lock:
            return self.find(session_id) or await self._read_history(session_id)

    async def _read_history(self, session_id: str) -> ServedSession | None:
        reopened = await self._histories.reopen(session_id)
        if reopened is None:
            return None
        history, earlier = reopened
        # No await may follow until a viewer uses the session. Otherwise it could be released before that.
        session = self.add(session_id, {}, history, SessionPhase.JOURNAL_ONLY, earlier)
        session.info.title = session.info.title or history.facts.title
        if earlier.has_open_turn:
            session.end_broken_turn(
                "the bridge that ran this turn stopped, and the turn ended with it; send the prompt again"
            )
        session.set_label(session.info.label)  # the title may have changed while the session was not open
        return session

    def recover_histories(self) -> None:
        """Write the journals that wait for space on the disk."""
        for session in self.by_id.values():
            if session.history.is_waiting:
                session.history.recover()

    def count_open(self) -> int:
        """Count the sessions that are not closed."""
        return sum(session.phase is not SessionPhase.CLOSED for session in self.by_id.values())

    def is_idle(self) -> bool:
        """Return whether no session has a viewer, a turn or a waiting request."""
        sessions = self.by_id.values()
        return not any(session.subscriptions or session.info.turns or session.waiting for session in sessions)

    def is_agent_needed(self) -> bool:
        """Return whether the agent has any session in memory."""
        return any(session.is_at_agent for session in self.by_id.values())

    def is_agent_asked(self) -> bool:
        """Return whether the agent has any session in memory, or is being asked for one."""
        return any(session.is_at_agent or session.is_asked or session.waiting for session in self.by_id.values())

    def announce_stored(self, stored: StoredHistory) -> None:
        """Announce a session that is not open here."""
        self.announcements.stored_changed(self.lists.describe_stored(stored))

    def touch(self, session: ServedSession) -> None:
        """Write and show the journal of a session at the end of this tick, as one block."""
        if not self._dirty:
            asyncio.get_running_loop().call_soon(self._flush)
        self._dirty[session] = None

    def _flush(self) -> None:
        dirty, self._dirty = self._dirty, {}
        for session in dirty:
            session.flush()
            session.wake_viewers()

    def changed(self, session: ServedSession) -> None:
        """Write, show and announce a change of a session at the end of this tick, unless the session is gone."""
        if self.by_id.get(session.id) is session:
            for child in self.subagents.of(session):
                # The end of a turn is the end of its subagents' words too.
                self._histories.follow(session.history, child.history)
            session.history.is_listing_due = True
            self.touch(session)  # first: announcements tell the time of the last write
            self.announcements.session_changed(session)
            self.subagents.parent_changed(session)

    async def _forget_label(self, session_id: str) -> None:
        try:
            await self.labels.forget(session_id)
        except OSError as error:
            _log.warning("the label of session %s is not removed: %s", session_id, error.strerror)
