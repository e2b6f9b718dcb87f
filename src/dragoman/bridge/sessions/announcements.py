"""Announcements: the states of the agent and its sessions, for viewers that know our extensions."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.viewers import Viewer

_log = logging.getLogger("dragoman.bridge")


class Announcements:
    """Sends viewers that know our extensions the state of the agent and, once per tick, of sessions that changed."""

    def __init__(self, agent: str, viewers: Mapping[str, Viewer], host: AgentHost) -> None:
        self._agent = agent
        self._viewers = viewers
        self._host = host
        self._changed: dict[ServedSession, None] = {}

    def session_changed(self, session: ServedSession) -> None:
        """Announce a session at the end of this tick."""
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._flush)
        self._changed[session] = None

    def stored_changed(self, described: dict[str, Any]) -> None:
        """Announce a session that no viewer has open."""
        self._announce(described["sessionId"], described)

    def session_opened(self, session: ServedSession, viewer: Viewer, *, after: int, reset: bool = False) -> None:
        """Send a viewer the state of a session that it opens, before any of its records."""
        if viewer.knows_extensions:
            described = {**session.describe(), "reset": True} if reset else session.describe()
            viewer.send(make_notification("_dragoman/session", described), viewer.subscription(session.id), after)
            if session.turns.queue and (subscription := session.subscriptions.get(viewer)) is not None:
                session.turns.queue.announce(session.id, {viewer: subscription})

    def session_deleted(self, session: ServedSession) -> None:
        """Announce that a session is gone."""
        self._changed.pop(session, None)
        end = {"state": "gone", "deleted": True, "viewers": 0}  # without `deleted` there would still be a history
        self._announce(session.id, {**session.describe(), **end})

    def agent_changed(self) -> None:
        """Announce the state of the agent."""
        self._send_state(self._host.status.describe())

    def agent_notice(self, words: str) -> None:
        """Announce a fault of the agent and log it. Viewers without our extensions do not see it."""
        _log.warning("%s: %s", self._agent, words)
        self._send_state({**self._host.status.describe(), "reason": words})

    def welcome(self, viewer: Viewer) -> None:
        """Send a new viewer the state of the agent."""
        if viewer.knows_extensions:
            viewer.send(_agent_state(self._host.status.describe(), viewer))

    def _flush(self) -> None:
        changed, self._changed = self._changed, {}
        if any(viewer.knows_extensions for viewer in self._viewers.values()):
            for session in changed:
                self._announce(session.id, session.describe())

    def _announce(self, session_id: str, described: dict[str, Any]) -> None:
        data = make_notification("_dragoman/session", described)
        for viewer in self._viewers.values():
            if viewer.knows_extensions and viewer.sees(session_id):
                viewer.outbox.announce(session_id, data)

    def _send_state(self, described: dict[str, Any]) -> None:
        for viewer in [viewer for viewer in self._viewers.values() if viewer.knows_extensions]:
            viewer.send(_agent_state(described, viewer))


def _agent_state(described: dict[str, Any], viewer: Viewer) -> bytes:
    """Make the notification of the agent's state. Its words may name any session, so a scoped viewer gets none."""
    shown = {"state": described["state"]} if viewer.is_scoped else described
    return make_notification("_dragoman/agent", shown)
