"""One agent behind the bridge: its supervisor, its registry of sessions, its delivery and its router, put together.

Each part gets the parts below it: `router → registry → delivery | supervisor`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.bridge.delivery import Delivery, FileJournalStore, TailBudget, Viewer, ViewerAccess
from dragoman.bridge.figures import Figure
from dragoman.bridge.registry import Announcements, SessionLabels, SessionRegistry, SessionRestorer
from dragoman.bridge.registry.state import SessionPhase
from dragoman.bridge.router import (
    AgentMessages,
    BroughtLogin,
    LinkedQuestion,
    Ownership,
    PendingLogins,
    Questions,
    Router,
)
from dragoman.bridge.settings import AgentSpec, Settings, ViewerLimits
from dragoman.bridge.supervisor import AgentFailure, AgentProcess, AgentSupervisor, WireLog, start_agent
from dragoman.errors import LogFailed
from dragoman.proc import Supervisor
from dragoman.store.disk import Disk

if TYPE_CHECKING:
    from dragoman.bridge.nodes import AgentNode, BridgeNode

_LOOKS = 8
"""Sweeps within the shortest time that matters."""

_MAX_PAUSE_S = 5.0

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class BackgroundTasks:
    """Tasks of one agent that run beside; an error in one is reported, and stops nothing else."""

    def __init__(self, agent: str, group: asyncio.TaskGroup) -> None:
        self.group = group
        self._agent = agent
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something beside."""
        task = self.group.create_task(self._guard(work))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        task.add_done_callback(lambda _: work.close())  # one that was cancelled before it began would complain
        return task

    def cancel(self) -> None:
        """Cancel all."""
        for task in list(self._running):
            task.cancel()

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- the top of a task: an error for one viewer is for no other
            context = {"message": f"the bridge of {self._agent} met an error", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


class ServedAgent:
    """Owns one agent's process, is its only client, and serves any number of viewers; made by a Bridge."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: Settings,
        processes: Supervisor,
        group: asyncio.TaskGroup,
        disk: Disk,
        *,
        bridge_node: "BridgeNode | None" = None,
    ) -> None:
        async def start() -> AgentProcess:
            process = await start_agent(processes, spec, agent_limits, agent_messages, wire_log)
            process.start(group)
            return process

        agent_limits, viewer_limits = settings.agent_limits, settings.viewer_limits
        wire_log = WireLog(viewer_limits.inspect_messages, viewer_limits.inspect_bytes)
        self.spec = spec
        self._settings = settings
        self._tasks = tasks = BackgroundTasks(spec.name, group)
        directory = Path(settings.home) / "bridge" / spec.name
        budget = TailBudget(viewer_limits.tail_bytes, viewer_limits.all_tails_bytes)
        self._node = node = None if bridge_node is None else _share(spec.name, bridge_node, budget, tasks.spawn)
        journals = FileJournalStore(disk, directory, budget) if node is None else node.journals
        self.delivery = delivery = Delivery(spec.name, journals, viewer_limits, tasks.spawn)
        self.supervisor = supervisor = AgentSupervisor(agent_limits, start, tasks.spawn, self)
        self._announcements = announcements = Announcements(spec.name, delivery.viewers, supervisor)
        questions = Questions(delivery, supervisor, Ownership(), agent_limits, node)
        logins = PendingLogins(supervisor, register=node, spawn=tasks.spawn)
        labels = SessionLabels(directory / "labels.json") if node is None else node.labels
        self.registry = registry = SessionRegistry(delivery, labels, announcements, questions)
        self._restorer = SessionRestorer(registry, supervisor, agent_limits.open_timeout_s)
        self.router = Router(
            spec,
            settings,
            wire_log=wire_log,
            delivery=delivery,
            supervisor=supervisor,
            registry=registry,
            restorer=self._restorer,
            announcements=announcements,
            questions=questions,
            logins=logins,
        )
        agent_messages = AgentMessages(
            delivery=delivery,
            supervisor=supervisor,
            registry=registry,
            announcements=announcements,
            questions=questions,
            logins=logins,
            turn_ended=self.router.begin_next,
        )
        if node is not None:
            _connect(node, self, announcements, viewer_limits)
        self._idle_since: float | None = None
        self._ending: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Look at the journals and labels of earlier runs; raises OSError."""
        await self.registry.labels.read()
        await self.delivery.journals.scan()
        self._tasks.spawn(self._sweep_regularly())

    def begin_close(self) -> None:
        """Begin to stop the agent for good, while viewers are still told that the bridge ends."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self.supervisor.close())

    async def close(self) -> None:
        """Drop all viewers, stop the agent, and leave whole journals, in bounded time."""
        self.begin_close()
        for viewer in list(self.delivery.viewers.values()):
            viewer.drop("the bridge is being stopped")
        if self._ending is not None:
            await asyncio.shield(self._ending)
        self._tasks.cancel()
        self.router.close()
        await self.delivery.close([session.journal for session in self.registry.sessions.values()])
        if self._node is not None:
            await self._node.close()

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Give the agent what a browser brought back from a login at an MCP server; None if no login here waits."""
        return await self.router.logins.come_back(back)

    def open_viewer(self, access: ViewerAccess | None = None, *, address: str | None = None) -> Viewer:
        """Let a viewer in, which reaches the bridge at this address; raises TooManyViewers."""
        viewer = self.delivery.open_viewer(self, access or ViewerAccess())
        if address is not None:
            self.router.logins.note_address(viewer, address)
        return viewer

    def describe_session(self, session_id: str) -> dict[str, Any] | None:
        """Describe a session that lists show; None if there is none."""
        listed = self.registry.lists.find(session_id)
        return None if listed is None else self.registry.lists.describe(listed)

    def open_question(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Give the question of a link that was made here, by the hash of its code, after the option was chosen."""
        opened = self.router.questions.links.open(hash_, option_id)
        if opened is None:
            return None
        described = {"agent": self.spec.title or self.spec.name, **opened.described}
        return LinkedQuestion(described, opened.is_offered)

    def end_share(self, share_id: str, reason: str) -> None:
        """Close the viewers that were let in by a share which is over."""
        for viewer in list(self.delivery.viewers.values()):
            if viewer.access.share_id == share_id:
                viewer.drop(reason)

    async def sweep(self, now: float) -> None:
        """Drop viewers that do not read, write journals that waited for space, stop an agent that nobody needs."""
        self.delivery.drop_stalled(now)
        self.registry.recover_journals()
        if not self._is_idle():
            self._idle_since = None
            return
        self._idle_since = self._idle_since or now
        if now - self._idle_since >= self._settings.agent_limits.idle_stop_s:
            self._idle_since = None
            await self.supervisor.stop()

    def measure(self) -> list[Figure]:
        """Return the figures of this agent, its sessions and its viewers, for monitoring."""
        viewers, sessions = self.delivery.viewers.values(), self.registry.sessions.values()
        traffic = self.router.inspector.traffic
        phases = Counter(session.life.phase for session in sessions)
        subscriptions = [each for viewer in viewers for each in viewer.outbox.subscriptions.values()]
        plain = {
            "dragoman_agent_up": int(self.supervisor.is_ready),
            "dragoman_agent_starts_total": traffic.starts,
            "dragoman_agent_requests_pending": len(self.supervisor.calls),
            "dragoman_agent_queue_bytes": self.supervisor.unsent_bytes,
            "dragoman_viewers": len(viewers),
            "dragoman_viewer_queue_bytes": sum(viewer.outbox.backlog_bytes for viewer in viewers),
            "dragoman_viewer_lag_messages": max((each.lag for each in subscriptions), default=0),
            "dragoman_questions_open": len(self.router.questions),
            "dragoman_journals_waiting": sum(session.journal.is_waiting for session in sessions),
        }
        agent = {"agent": self.spec.name}
        return [
            *(Figure(name, value, agent) for name, value in plain.items()),
            *(
                Figure("dragoman_sessions", phases[each], {**agent, "phase": each.name.lower()})
                for each in SessionPhase
            ),
            *(
                Figure(f"dragoman_agent_{what}_total", count, {**agent, "direction": direction})
                for what, counts in (("bytes", traffic.bytes), ("messages", traffic.messages))
                for direction, count in counts.items()
            ),
        ]

    # The bridge as a viewer meets it: delivery.viewer.ViewerHandler.

    async def greet(self, viewer: Viewer, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP."""
        return await self.router.greet(viewer, line)

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Take a message of a viewer."""
        if self._node is None:
            self.router.receive(viewer, line)
        else:
            self._node.receive(viewer, line)

    def knows_session(self, session_id: str) -> bool:
        """Tell whether a session is open here, or has a journal here."""
        return self.registry.knows(session_id)

    async def has_session(self, session_id: str) -> bool:
        """Tell whether a session is known here, or at another node; raises LogFailed."""
        return self.knows_session(session_id) or (self._node is not None and await self._node.has_session(session_id))

    def could_open(self, session_id: str) -> bool:
        """Tell whether a session is here, or might be at the agent or at another node."""
        return self.registry.knows(session_id) or self.supervisor.support.can_reopen or self._node is not None

    async def might_have_session(self, session_id: str) -> bool:
        """Tell whether a session is known here, or at another node; one that cannot be looked for might be."""
        try:
            return await self.has_session(session_id)
        except LogFailed:
            return True  # a request about it is refused in words

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Tell whether a session is a subagent of another one, at any depth."""
        return self.registry.is_part_of(session_id, of)

    def viewer_left(self, viewer: Viewer) -> None:
        """Detach a viewer everywhere; its requests go on."""
        if self.delivery.remove_viewer(viewer):
            self.registry.viewer_left(viewer)
            viewer.end()
            self.router.viewer_left(viewer)
            if self._node is not None:
                self._node.viewer_left(viewer)
            viewer.outbox.subscriptions.clear()

    # The bridge as it follows the agent's life: supervisor.AgentListener.

    def agent_changed(self) -> None:
        """Tell viewers the state of the agent."""
        self._announcements.agent_changed()

    def agent_ready(self) -> None:
        """Give sessions with viewers back to the agent."""
        self.router.agent_ready()
        self._restorer.wake_watched()

    def agent_ended(self, failure: AgentFailure) -> None:
        """Forget the questions and the sessions that the agent had in memory."""
        self.router.questions.agent_ended()
        self.router.logins.clear()
        self.registry.agent_ended(failure)

    def is_agent_wanted(self) -> bool:
        """Tell whether viewers are connected."""
        return bool(self.delivery.viewers)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return self.router.join_capabilities(params)

    async def _sweep_regularly(self) -> None:
        shortest_s = min(self._settings.viewer_limits.stall_s, self._settings.agent_limits.idle_stop_s)
        pause_s = min(_MAX_PAUSE_S, shortest_s / _LOOKS)
        while True:
            await asyncio.sleep(pause_s)
            await self.sweep(time.monotonic())

    def _is_idle(self) -> bool:
        """Tell whether the agent does nothing, nobody looks, and nothing is lost if it ends."""
        is_at_work = len(self.supervisor.calls) or len(self.router.questions) or not self.registry.is_idle()
        if not self.supervisor.is_ready or is_at_work:
            return False
        return self.supervisor.support.can_reopen or not self.registry.is_agent_needed()


def _share(name: str, node: "BridgeNode", budget: TailBudget, spawn: Spawn) -> "AgentNode":
    """Share the sessions of an agent with other nodes; the package for databases is there by now."""
    from dragoman.bridge.nodes import AgentNode

    return AgentNode(name, node, budget, spawn)


def _connect(node: "AgentNode", served: ServedAgent, announcements: Announcements, limits: ViewerLimits) -> None:
    from dragoman.bridge.nodes import AgentParts

    parts = AgentParts(
        served.delivery,
        served.supervisor,
        served.registry,
        announcements,
        served.router,
        served,
        limits,
        served,
    )
    node.connect(parts)
    served.registry.on_added = node.session_added
