"""News for viewers that know our extensions: how each session is, and how the agent is."""

import logging
from typing import TYPE_CHECKING, Any

from dragoman.bridge.envelope import make_notification
from dragoman.bridge.hub.session import Session

if TYPE_CHECKING:
    from dragoman.bridge.hub.hub import Hub
    from dragoman.bridge.hub.viewer import Viewer

_log = logging.getLogger("dragoman.bridge")


class News:
    """Tells them, once for each tick of the event loop."""

    def __init__(self, hub: "Hub") -> None:
        self._hub = hub
        self._changed: dict[Session, None] = {}

    def changed(self, session: Session) -> None:
        """Take note that a session is not as it was."""
        self._changed[session] = None

    def flush(self) -> None:
        """Tell of all sessions that changed."""
        changed, self._changed = self._changed, {}
        viewers = self._readers()
        if not viewers:
            return
        for session in changed:
            data = make_notification("_dragoman/session", session.describe())
            for viewer in viewers:
                viewer.send_news(session.id, data)

    def attached(self, session: Session, viewer: "Viewer", *, after: int, reset: bool = False) -> None:
        """Tell a viewer how the session is that it came to, before all that it gets of it."""
        if viewer.marked:
            described = {**session.describe(), "reset": True} if reset else session.describe()
            viewer.send(make_notification("_dragoman/session", described), viewer.attachments.get(session.id), after)

    def deleted(self, session: Session) -> None:
        """Tell that a session is no more."""
        self._changed.pop(session, None)
        end = {"state": "gone", "deleted": True, "viewers": 0}  # without `deleted` there would still be a history
        data = make_notification("_dragoman/session", {**session.describe(), **end})
        for viewer in self._readers():
            viewer.send_news(session.id, data)

    def agent_changed(self) -> None:
        """Tell how the agent is."""
        data = make_notification("_dragoman/agent", self._describe_agent())
        for viewer in self._readers():
            viewer.send(data)

    def agent_notice(self, words: str) -> None:
        """Tell of something that the agent did and that goes no further; the log has it for all others."""
        _log.warning("%s: %s", self._hub.spec.name, words)
        data = make_notification("_dragoman/agent", {**self._describe_agent(), "reason": words})
        for viewer in self._readers():
            viewer.send(data)

    def welcome(self, viewer: "Viewer") -> None:
        """Tell a viewer that came how the agent is."""
        if viewer.marked:
            viewer.send(make_notification("_dragoman/agent", self._describe_agent()))

    def _readers(self) -> "list[Viewer]":
        return [viewer for viewer in self._hub.viewers.values() if viewer.marked]

    def _describe_agent(self) -> dict[str, Any]:
        return self._hub.supervisor.status.describe()
