"""Subagents: sessions that an agent makes for parts of its work, and that nobody opens.

The agent announces one in the session that it works for, its parent. From then on its updates and questions come, and
they are for the viewers of the parent, as they would be on the agent's own connection. So each is a session with a
journal, and the viewers of the parent that take subagents are subscribed to it.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, Journal, Viewer
from dragoman.bridge.envelope import encode, fields_of, string_of
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.state import SessionPhase
from dragoman.errors import DragomanError

MAX_CHILDREN = 1_000
"""Subagents of one session that have journals; the updates of more are dropped."""

_log = logging.getLogger("dragoman.bridge")

_AddSession = Callable[[str, dict[str, Raw], Journal, SessionPhase], ServedSession]


class JoinQuestions(Protocol):
    """The router's questions, as a viewer that follows a subagent needs them."""

    def viewer_joined(self, session: ServedSession, viewer: Viewer) -> None:
        """Ask a viewer the open questions of a session."""
        ...


class ChangeLabel(Protocol):
    """The registry's way to change a label."""

    def __call__(self, session_id: str, **changes: str | bool | None) -> Awaitable[bool]:
        """Change it on the disk and here."""
        ...


class Subagents:
    """The subagents of each session of one agent."""

    def __init__(
        self,
        sessions: dict[str, ServedSession],
        delivery: Delivery,
        questions: JoinQuestions,
        add: _AddSession,
        change_label: ChangeLabel,
    ) -> None:
        self._children: dict[str, dict[str, None]] = {}
        self._sessions = sessions
        self._journals = delivery.journals
        self._spawn = delivery.spawn
        self._questions = questions
        self._add = add
        self._change_label = change_label

    def of(self, parent: ServedSession) -> list[ServedSession]:
        """Give the subagents of a session."""
        return [self._sessions[each] for each in self._children.get(parent.id, ()) if each in self._sessions]

    def take_update(self, parent: ServedSession, line: bytes) -> None:
        """Take a `subagent_update`: its first one makes the subagent known, each may give it a title."""
        update = fields_of(fields_of(fields_of(Raw(line)).get("params", UNSET)).get("update", UNSET))
        child_id, title = string_of(update.get("sessionId")), string_of(update.get("title"))
        if child_id is None or string_of(update.get("sessionUpdate")) != "subagent_update":
            return
        children = self._children.setdefault(parent.id, {})
        if child_id not in children and child_id not in self._sessions and len(children) < MAX_CHILDREN:
            children[child_id] = None
            self._make_known(parent, child_id, string_of(update.get("cwd")))
        child = self._sessions.get(child_id)
        if child is not None and child_id in children and title is not None:
            _give_title(child, title)

    def parent_changed(self, parent: ServedSession) -> None:
        """Have the viewers of a session follow its subagents."""
        for child in self.of(parent):
            for viewer in [each for each in parent.subscriptions if each not in child.subscriptions]:
                if viewer.takes_subagents:
                    child.subscribe(viewer, max(0, child.journal.end))
                    self._questions.viewer_joined(child, viewer)

    def forget(self, parent_id: str) -> None:
        """Forget which subagents a session had."""
        self._children.pop(parent_id, None)

    def _make_known(self, parent: ServedSession, child_id: str, cwd: str | None) -> None:
        if child_id in self._journals.stored:
            self._spawn(self._reopen(parent, child_id))
            return
        journal = self._journals.create(child_id, cwd or parent.cwd, [])
        self._journals.settle(journal)
        self._adopt(parent, journal)

    async def _reopen(self, parent: ServedSession, child_id: str) -> None:
        """Go on with the journal of an earlier run; updates are held meanwhile."""
        try:
            journal = await self._journals.reopen(child_id)
        except (OSError, DragomanError) as error:
            _log.warning("the journal of subagent %s cannot be read: %s", child_id, error)
            return
        if journal is not None:
            self._adopt(parent, journal)

    def _adopt(self, parent: ServedSession, journal: Journal) -> None:
        async def keep_parent() -> None:
            await self._change_label(child.id, parent=parent.id)

        journal.set_version(parent.journal.version)  # the agent speaks one version in all sessions
        child = self._add(journal.header.id, {}, journal, SessionPhase.LIVE)
        child.info.label = msgspec.structs.replace(child.info.label, parent=parent.id)
        child.info.prompted = True  # the agent has: it is kept and listed, as its parent is
        self._spawn(keep_parent())
        self.parent_changed(parent)


def _give_title(child: ServedSession, title: str) -> None:
    """Give a subagent the title that its parent tells; viewers are told of it there."""
    if title != child.info.title and child.info.label.title is None:
        child.info.title = title
        child.journal.note("title", encode({"title": title}))
        child.changed()
