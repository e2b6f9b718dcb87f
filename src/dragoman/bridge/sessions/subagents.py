"""Subagents: sessions that an agent creates for parts of its work. No viewer opens them.

The agent announces a subagent in its parent session. Then it sends updates and questions of the subagent, which are for
the viewers of the parent, as on a direct connection to the agent. So each subagent is a session with a journal. Viewers
of the parent that support subagents are subscribed to it.
"""

import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery import EarlierRun, History
from dragoman.bridge.sessions.phase import SessionPhase
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.viewers import Delivery
from dragoman.errors import DragomanError
from dragoman.text import one_line
from dragoman.wire.envelope import encode, fields_of, string_of

if TYPE_CHECKING:
    from dragoman.bridge.sessions.sessions import ServedSessions

MAX_CHILDREN = 1_000
"""Subagents per session that have journals. The updates of more are dropped."""

_log = logging.getLogger("dragoman.bridge")


class Subagents:
    """The subagents of each session of one agent."""

    def __init__(self, sessions: "ServedSessions", delivery: Delivery) -> None:
        self._children: dict[str, dict[str, None]] = {}
        self._sessions = sessions
        self._histories = delivery.histories
        self._spawn = delivery.spawn

    def of(self, parent: ServedSession) -> list[ServedSession]:
        """Return the subagents of a session."""
        return [session for each in self._children.get(parent.id, ()) if (session := self._sessions.find(each))]

    def is_followed(self, session: ServedSession) -> bool:
        """Return whether a session is the subagent of an open session, which may send more updates of it."""
        parent = session.info.label.parent
        return parent in self._children and session.id in self._children[parent] and parent in self._sessions.by_id

    def receive_update(self, parent: ServedSession, line: bytes) -> None:
        """Handle a `subagent_update`. The first one adds the subagent, and each may change its title."""
        update = fields_of(fields_of(fields_of(Raw(line)).get("params", UNSET)).get("update", UNSET))
        child_id, title = string_of(update.get("sessionId")), string_of(update.get("title"))
        if child_id is None or string_of(update.get("sessionUpdate")) != "subagent_update":
            return
        children = self._children.setdefault(parent.id, {})
        if child_id not in children and self._sessions.find(child_id) is None and len(children) < MAX_CHILDREN:
            children[child_id] = None
            self._add_child(parent, child_id, string_of(update.get("cwd")))
        child = self._sessions.find(child_id)
        if child is not None and child_id in children and title is not None:
            _set_title(child, title)

    def parent_changed(self, parent: ServedSession) -> None:
        """Subscribe the viewers of a session to its subagents."""
        for child in self.of(parent):
            for viewer in [each for each in parent.subscriptions if each not in child.subscriptions]:
                if viewer.takes_subagents:
                    child.subscribe(viewer, max(0, child.history.end))
                    self._sessions.questions.viewer_joined(child, viewer)

    def forget(self, parent_id: str) -> None:
        """Forget which subagents a session had."""
        self._children.pop(parent_id, None)

    def _add_child(self, parent: ServedSession, child_id: str, cwd: str | None) -> None:
        if not self._histories.can_keep(child_id):
            _log.warning("subagent %s is not shown: the database keeps no NUL characters", one_line(child_id))
            return
        if child_id in self._histories.stored:
            self._spawn(self._reopen(parent, child_id))
            return
        history = self._histories.create(child_id, cwd or parent.cwd, [])
        self._histories.settle(history)
        self._adopt(parent, history)

    async def _reopen(self, parent: ServedSession, child_id: str) -> None:
        """Continue the journal of an earlier run. Updates are held until it is open."""
        async with self._sessions.opening_lock(child_id):
            child = self._sessions.find(child_id)
            if child is not None:  # a viewer has opened it
                if child.phase is SessionPhase.JOURNAL_ONLY:
                    child.phase = SessionPhase.LIVE
                self.parent_changed(parent)
                return
            try:
                reopened = await self._histories.reopen(child_id)
            except (OSError, DragomanError) as error:
                _log.warning("the journal of subagent %s cannot be read: %s", child_id, error)
                return
            if reopened is not None:
                self._adopt(parent, *reopened)

    def _adopt(self, parent: ServedSession, history: History, earlier: EarlierRun | None = None) -> None:
        async def keep_parent() -> None:
            await self._sessions.change_label(child.id, parent=parent.id)

        history.set_version(parent.history.version)  # the agent speaks one version in all sessions
        child = self._sessions.add(history.header.id, {}, history, SessionPhase.LIVE, earlier)
        child.info.label = msgspec.structs.replace(child.info.label, parent=parent.id)
        child.info.prompted = True  # by the agent, so it is kept and listed like its parent
        self._spawn(keep_parent())
        self.parent_changed(parent)


def _set_title(child: ServedSession, title: str) -> None:
    """Set the title that the parent announced. Viewers see it there."""
    if title != child.info.title and child.info.label.title is None:
        child.info.title = title
        child.history.record("title", encode(title))
        child.changed()
