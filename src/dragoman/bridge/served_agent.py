"""One agent of the bridge, assembled from its host, its sessions, its delivery and its router.

Each part receives the parts below it: `router → sessions → delivery | agent_host`.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import AgentFailure, AgentLink
from dragoman.bridge.delivery import FileHistoryStore, TailBudget
from dragoman.bridge.figures import Figure
from dragoman.bridge.router import (
    AgentMessages,
    BroughtLogin,
    LinkedQuestion,
    PendingLogins,
    Router,
)
from dragoman.bridge.sessions import (
    Announcements,
    Ownership,
    Questions,
    ServedSessions,
    SessionLabels,
    SessionPhase,
)
from dragoman.bridge.settings import AgentSpec, BridgeSettings, ViewerLimits
from dragoman.bridge.tasks import BackgroundTasks
from dragoman.bridge.viewers import Delivery, Viewer, ViewerAccess
from dragoman.bridge.wire_log import WireLog
from dragoman.errors import LogError
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.store.disk import Disk

if TYPE_CHECKING:
    from dragoman.bridge.nodes import AgentNode, BridgeNode

_LOOKS = 8
"""Number of sweeps within the shortest timeout."""

MAX_PAUSE_S = 5.0

Spawn = Callable[[Coroutine[Any, Any, None]], object]


class ServedAgent:
    """Owns one agent's process, is its only client, and serves any number of viewers. Created by a Bridge."""

    def __init__(
        self,
        spec: AgentSpec,
        settings: BridgeSettings,
        processes: Supervisor,
        group: asyncio.TaskGroup,
        disk: Disk,
        *,
        bridge_node: "BridgeNode | None" = None,
    ) -> None:
        async def start(ids: Iterator[int]) -> AgentLink:
            # The agent is the user's program and needs their keys and settings, so it inherits the whole environment.
            child = await processes.start(started.command, cwd=started.cwd, env=started.env, inherit=EVERYTHING)
            wire_log.traffic.starts += 1
            link = AgentLink(child, agent_limits, agent_messages, wire_log, ids)
            link.start(group)
            return link

        agent_limits, viewer_limits = settings.agent_limits, settings.viewer_limits
        wire_log = WireLog(viewer_limits.inspect_messages, viewer_limits.inspect_bytes)
        self.spec = spec
        started = spec if bridge_node is None else bridge_node.bind_agent(spec)
        self._settings = settings
        self._tasks = tasks = BackgroundTasks(spec.name, group)
        directory = Path(settings.home) / "bridge" / spec.name
        budget = TailBudget(viewer_limits.tail_bytes, viewer_limits.all_tails_bytes)
        self._node = node = None if bridge_node is None else _share(spec.name, bridge_node, budget, tasks.spawn)
        histories = FileHistoryStore(disk, directory, budget) if node is None else node.histories
        self.delivery = delivery = Delivery(spec.name, histories, viewer_limits, tasks.spawn)
        self.host = host = AgentHost(agent_limits, start, tasks.spawn, self)
        announcements = Announcements(spec.name, delivery.viewers, host)
        self.questions = Questions(delivery, host, Ownership(), agent_limits, None if node is None else node.name)
        self.sessions = ServedSessions(
            agent_limits,
            host=host,
            delivery=delivery,
            labels=SessionLabels(directory / "labels.json") if node is None else node.labels,
            announcements=announcements,
            questions=self.questions,
            start=tasks.start,
        )
        self.router = Router(
            spec,
            settings,
            wire_log=wire_log,
            start=tasks.start,
            delivery=delivery,
            host=host,
            sessions=self.sessions,
            logins=PendingLogins(host, register=node, spawn=tasks.spawn),
            register=node,
            nodes=None if node is None else node.remote,
        )
        agent_messages = AgentMessages(
            delivery=delivery,
            sessions=self.sessions,
            logins=self.router.logins,
            turn_ended=self.router.begin_next,
        )
        if node is not None:
            _connect(node, self, viewer_limits)
        self._idle_since: float | None = None
        self._ending: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Read the labels and the list of journals of earlier runs. Raises OSError."""
        await self.sessions.labels.read()
        await self.delivery.histories.scan()
        self._tasks.spawn(self._sweep_regularly())
        self._tasks.spawn(self.router.search.open_index())

    def begin_close(self) -> None:
        """Begin to stop the agent for good while viewers are still being notified of the stop."""
        if self._ending is None:
            self._ending = asyncio.ensure_future(self.host.close())

    async def close(self) -> None:
        """Drop all viewers, stop the agent, and complete the journals, in bounded time."""
        self.begin_close()
        for viewer in list(self.delivery.viewers.values()):
            viewer.drop("the bridge is stopping")
        if self._ending is not None:
            await asyncio.shield(self._ending)
        self._tasks.cancel()
        self.router.close()
        await self.delivery.close([session.history for session in self.sessions.by_id.values()])
        if self._node is not None:
            await self._node.close()

    async def bring_login(self, back: Mapping[str, str]) -> BroughtLogin | None:
        """Pass the parameters of a login's redirect to the agent. Return None if no login here waits for them."""
        return await self.router.logins.receive_redirect(back)

    def open_viewer(self, access: ViewerAccess | None = None, *, address: str | None = None) -> Viewer:
        """Create a viewer that reaches the bridge at this address. Raises TooManyViewersError."""
        viewer = self.delivery.open_viewer(self, access or ViewerAccess())
        if address is not None:
            self.router.logins.record_address(viewer, address)
        return viewer

    def describe_session(self, session_id: str) -> dict[str, Any] | None:
        """Return the list entry of a session, or None if lists do not show it."""
        listed = self.sessions.lists.find(session_id)
        return None if listed is None else self.sessions.lists.describe(listed)

    def open_question(self, hash_: bytes, option_id: str | None = None) -> LinkedQuestion | None:
        """Return the question of a link that was created here, or None. Apply the option first, if given."""
        return self.router.open_question(hash_, option_id)

    def end_share(self, share_id: str, reason: str) -> None:
        """Close the viewers that use a share that has ended."""
        for viewer in list(self.delivery.viewers.values()):
            if viewer.access.share_id == share_id:
                viewer.drop(reason)

    async def sweep(self, now: float) -> None:
        """Drop viewers that do not read, write journals that waited for disk space, and stop an idle agent.

        Closed sessions and sessions that were only read are removed from memory.
        """
        self.delivery.drop_stalled(now)
        self.sessions.recover_histories()
        self.sessions.release_unused()
        self._tasks.spawn(self.router.search.update_index())
        if not self._is_idle():
            self._idle_since = None
            return
        self._idle_since = self._idle_since or now
        if now - self._idle_since >= self._settings.agent_limits.idle_stop_s:
            self._idle_since = None
            await self.host.stop()

    def measure(self) -> list[Figure]:
        """Return the metrics of this agent, its sessions and its viewers."""
        viewers, sessions = self.delivery.viewers.values(), self.sessions.by_id.values()
        traffic = self.router.inspector.traffic
        phases = Counter(session.phase for session in sessions)
        subscriptions = [each for viewer in viewers for each in viewer.outbox.subscriptions.values()]
        plain = {
            "dragoman_agent_up": int(self.host.is_ready),
            "dragoman_agent_starts_total": traffic.starts,
            "dragoman_agent_requests_pending": self.host.pending,
            "dragoman_agent_queue_bytes": self.host.unsent_bytes,
            "dragoman_viewers": len(viewers),
            "dragoman_viewer_queue_bytes": sum(viewer.outbox.backlog_bytes for viewer in viewers),
            "dragoman_viewer_lag_messages": max((each.lag for each in subscriptions), default=0),
            "dragoman_questions_open": len(self.questions),
            "dragoman_journals_waiting": sum(session.history.is_waiting for session in sessions),
        }
        # Each figure is labelled with the agent, some also with the phase of sessions or the direction of messages.
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

    # The interface for viewers. Implements `viewers.viewer.ViewerHandler`.

    async def greet(self, viewer: Viewer, line: bytes) -> bytes:
        """Answer the first message of a connection over HTTP."""
        return await self.router.greet(viewer, line)

    def receive(self, viewer: Viewer, line: bytes) -> None:
        """Handle a message of a viewer."""
        self.router.receive(viewer, line)

    def knows_session(self, session_id: str) -> bool:
        """Return whether a session is open here, or has a journal here."""
        return self.sessions.knows(session_id)

    async def has_session(self, session_id: str) -> bool:
        """Return whether a session is known here or at another node. Raises LogError."""
        return self.knows_session(session_id) or (self._node is not None and await self._node.has_session(session_id))

    def could_open(self, session_id: str) -> bool:
        """Return whether a session is here, or might be at the agent or at another node."""
        return self.sessions.knows(session_id) or self.host.support.can_reopen or self._node is not None

    async def might_have_session(self, session_id: str) -> bool:
        """Return whether a session is known here or at another node, or True if the database is not available."""
        try:
            return await self.has_session(session_id)
        except LogError:
            return True  # a request about it fails with a proper error

    def is_part_of(self, session_id: str, of: str) -> bool:
        """Return whether a session is a subagent of another one, at any depth."""
        return self.sessions.is_part_of(session_id, of)

    def viewer_left(self, viewer: Viewer) -> None:
        """Remove a viewer from all parts. Its requests are not cancelled."""
        if self.delivery.remove_viewer(viewer):
            self.sessions.viewer_left(viewer)
            viewer.end()
            self.router.viewer_left(viewer)
            viewer.outbox.subscriptions.clear()

    # The interface for the agent's host. Implements `agent_host.AgentListener`.

    def agent_changed(self) -> None:
        """Notify viewers of the agent's state."""
        self.sessions.announcements.agent_changed()

    def agent_ready(self) -> None:
        """Reopen the sessions that have viewers at the agent."""
        self.router.agent_ready()
        self.sessions.wake_watched()

    def agent_ended(self, failure: AgentFailure) -> None:
        """Forget the questions and the sessions that the agent had in memory."""
        self.questions.agent_ended()
        self.router.logins.clear()
        self.sessions.agent_ended(failure)

    def is_agent_wanted(self) -> bool:
        """Return whether viewers are connected."""
        return bool(self.delivery.viewers)

    def join_capabilities(self, params: Raw) -> Raw:
        """Add the capabilities of all connected viewers to params of `initialize`."""
        return self.router.join_capabilities(params)

    async def _sweep_regularly(self) -> None:
        shortest_s = min(self._settings.viewer_limits.stall_s, self._settings.agent_limits.idle_stop_s)
        pause_s = min(MAX_PAUSE_S, shortest_s / _LOOKS)
        while True:
            await asyncio.sleep(pause_s)
            await self.sweep(time.monotonic())

    def _is_idle(self) -> bool:
        """Return whether the agent is idle and can be stopped without losing anything."""
        is_at_work = self.host.pending or len(self.questions) or not self.sessions.is_idle()
        if not self.host.is_ready or is_at_work:
            return False
        return self.host.support.can_reopen or not self.sessions.is_agent_needed()


def _share(name: str, node: "BridgeNode", budget: TailBudget, spawn: Spawn) -> "AgentNode":
    """Share the sessions of an agent with other nodes."""
    from dragoman.bridge.nodes import AgentNode  # only a bridge with a store needs psycopg

    return AgentNode(name, node, budget, spawn)


def _connect(node: "AgentNode", served: ServedAgent, limits: ViewerLimits) -> None:
    from dragoman.bridge.nodes import AgentParts

    parts = AgentParts(
        served.delivery,
        served.host,
        served.sessions,
        served.router,
        served,
        limits,
    )
    node.connect(parts)
    served.sessions.on_added = node.remote.session_added
