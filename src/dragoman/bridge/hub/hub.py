"""The bridge's side of one agent."""

import asyncio
import logging
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

from msgspec import Raw

from dragoman.bridge.hub.asks import Asks
from dragoman.bridge.hub.desk import Desk
from dragoman.bridge.hub.early import Early
from dragoman.bridge.hub.greeting import join_params
from dragoman.bridge.hub.holdings import Holdings
from dragoman.bridge.hub.journal import Journal
from dragoman.bridge.hub.news import News
from dragoman.bridge.hub.reader import AgentReader
from dragoman.bridge.hub.session import Session
from dragoman.bridge.hub.shelf import Shelf
from dragoman.bridge.hub.sweeper import Sweeper
from dragoman.bridge.hub.syncer import Syncer, sync_side_by_side
from dragoman.bridge.hub.tail import TailBudget
from dragoman.bridge.hub.terminals import Terminals
from dragoman.bridge.hub.viewer import TooManyViewers, Viewer
from dragoman.bridge.hub.waker import Waker
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.bridge.supervisor import AgentProcess, AgentSupervisor, WireLog, start_agent
from dragoman.proc import Supervisor
from dragoman.store.disk import Disk

LAST_SYNC_S = 0.5
"""For journals to reach the disk when the bridge ends. They are written by then: only a power cut could lose the end
of those that are left, and the system syncs them some seconds later."""

_log = logging.getLogger("dragoman.bridge")


class Hub:
    """Owns one agent's process, is its only client, and serves any number of viewers; made by a Bridge."""

    def __init__(
        self, spec: AgentSpec, settings: Settings, processes: Supervisor, tasks: asyncio.TaskGroup, disk: Disk
    ) -> None:
        self.spec = spec
        self.settings = settings
        self.viewers: dict[str, Viewer] = {}
        self.sessions: dict[str, Session] = {}
        self.early = Early()
        self.holdings = Holdings()
        self.terminals = Terminals()
        self.wire_log = WireLog(settings.inspect_messages, settings.inspect_bytes)
        budget = TailBudget(settings.tail_bytes, settings.all_tails_bytes)
        self.shelf = Shelf(disk, Path(settings.home) / "bridge" / spec.name, budget)
        self.supervisor = AgentSupervisor(settings, self._start, self.spawn, self)
        self.syncer = Syncer(self.spawn)
        self.asks = Asks(self)
        self.waker = Waker(self)
        self.news = News(self)
        self.desk = Desk(self)
        self._processes = processes
        self._tasks = tasks
        self.reader = AgentReader(self)
        self._running: set[asyncio.Task[None]] = set()
        self._dirty: dict[Session, None] = {}
        self._flush_due = False
        self._ending: asyncio.Future[None] | None = None

    def open(self, *, read_only: bool = False) -> Viewer:
        """Let a viewer in; raises TooManyViewers."""
        if len(self.viewers) >= self.settings.max_viewers:
            raise TooManyViewers(self.spec.name, self.settings.max_viewers)
        viewer = Viewer(self, read_only=read_only)
        self.viewers[viewer.id] = viewer
        return viewer

    def find(self, viewer_id: str) -> Viewer | None:
        """Give a viewer by its id; None once it is gone."""
        return self.viewers.get(viewer_id)

    async def start(self) -> None:
        """Look at the journals there are; raises OSError."""
        await self.shelf.scan()
        self.spawn(Sweeper(self).run())

    def begin_close(self) -> None:
        """Begin to stop the agent for good, while viewers are still told that the bridge ends."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self.supervisor.close())

    async def close(self) -> None:
        """Let all viewers go, stop the agent, and leave whole journals, in bounded time."""
        self.begin_close()
        for viewer in list(self.viewers.values()):
            viewer.drop("the bridge is being stopped")
        if self._ending is not None:
            await asyncio.shield(self._ending)
        for task in list(self._running):
            task.cancel()
        journals = [session.journal for session in self.sessions.values()]
        left = await sync_side_by_side(journals, LAST_SYNC_S)
        if left:
            _log.warning("%s: %d journals were written and not synced: the disk is slow", self.spec.name, left)
        for journal in journals:
            journal.close()
            if journal.is_waiting:
                _log.warning("%s: the disk is full: the end of %s is lost", self.spec.name, journal.path)

    def is_agent_blank(self) -> bool:
        """Tell whether the agent that runs has nothing that another life of it would not have."""
        if (
            not self.supervisor.is_ready
            or self.supervisor.initialize.has_login
            or len(self.supervisor.calls)
            or len(self.asks)
        ):
            return False
        return not any(session.live or session.waking or session.parked for session in self.sessions.values())

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside; what goes wrong in it is reported, and stops nothing else."""
        task = self._tasks.create_task(self._guard(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: work.close())  # one that was cancelled before it began would complain
        return task

    def touch(self, session: Session) -> None:
        """Take note that something is to be written and shown."""
        self._dirty[session] = None
        if not self._flush_due:
            self._flush_due = True
            asyncio.get_running_loop().call_soon(self._flush)

    def changed(self, session: Session) -> None:
        """Take note that a session is not as it was; what still happens to one that is no more is no news."""
        if self.sessions.get(session.id) is session:
            self.news.changed(session)
            self.touch(session)

    def could_open(self, session_id: str) -> bool:
        """Tell whether a session is here, or might be at the agent."""
        return session_id in self.sessions or session_id in self.shelf.known or self.supervisor.support.can_reopen

    def add_session(self, session_id: str, params: dict[str, Raw], journal: Journal) -> Session:
        """Make a session known, with what was said of it before it was."""
        session = Session(session_id, params, journal, self.shelf, self.changed)
        journal.on_failure = lambda: self.changed(session)
        self.sessions[session_id] = session
        for line in self.early.take(session_id):
            session.take(line)
        self.changed(session)
        return session

    def settle(self, session: Session) -> None:
        """Let the journal of a session that was opened take the place of an older one."""
        self.shelf.settle(session.journal)

    def drop_session(self, session: Session) -> None:
        """Forget a session that could not be opened, or was deleted."""
        self.sessions.pop(session.id, None)
        self.asks.forget_session(session)
        self._dirty.pop(session, None)
        for viewer in list(session.attachments):
            self.detach(viewer, session)
        session.drop_replay()
        session.journal.delete()
        if session.id not in self.shelf.known:
            self.news.deleted(session)

    def delete_session(self, session_id: str) -> None:
        """Forget a session for good."""
        self.shelf.forget(session_id)
        session = self.sessions.get(session_id)
        if session is not None:
            self.drop_session(session)

    def let_go(self, viewer: Viewer) -> None:
        """Detach a viewer everywhere; what it asked for goes on."""
        if self.viewers.pop(viewer.id, None) is None:
            return
        for attachment in list(viewer.attachments.values()):
            if attachment.session is not None:
                attachment.session.detach(viewer)
        viewer.end()
        self.holdings.forget(viewer)  # first: what waits for it is not to be asked of it again
        self.terminals.forget(viewer)
        self.asks.left(viewer)
        self.desk.inspecting.left(viewer)
        viewer.attachments.clear()

    def detach(self, viewer: Viewer, session: Session) -> None:
        """Take a viewer off a session; others are asked what it was asked there."""
        session.detach(viewer)
        viewer.detach(session.id)
        self.asks.left(viewer, session)

    def _flush(self) -> None:
        self._flush_due = False
        dirty, self._dirty = self._dirty, {}
        for session in dirty:
            session.flush()
            session.wake_viewers()
        self.news.flush()

    async def _start(self) -> AgentProcess:
        process = await start_agent(self._processes, self.spec, self.settings, self.reader, self.wire_log)
        process.start(self._tasks)
        return process

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers."""
        return join_params(params, [viewer.greeting for viewer in self.viewers.values() if viewer.greeting is not None])

    def is_agent_wanted(self) -> bool:
        """Tell whether viewers are connected."""
        return bool(self.viewers)

    def agent_changed(self) -> None:
        """Tell viewers how the agent is."""
        self.news.agent_changed()

    def agent_ready(self) -> None:
        """Have the agent open again the sessions that viewers are on."""
        for session in self.sessions.values():
            if not session.live and session.gone is None and not session.shelved and session.attachments:
                self.waker.wake(session)

    def agent_ended(self) -> None:
        """Forget what the agent had in memory."""
        self.asks.forget_all()
        self.early.clear()
        self.terminals.clear()
        for viewer in self.viewers.values():
            viewer.terminal_names.clear()
        for session in self.sessions.values():
            if session.live:
                session.live = session.muted = False
                self.changed(session)
                self.syncer.want(session.journal)

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- the top of a task: one viewer's failure is nobody else's
            context = {"message": f"the bridge of {self.spec.name} met an error", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)
