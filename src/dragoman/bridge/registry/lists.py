"""The sessions of one agent as lists show them: those that were prompted or that somebody has open, the latest first.

A list is of some groups (`labels.GROUPS`), of all directories or one. It is read page by page: each page begins behind
the place of the last session of the page before.
"""

import heapq
from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from dragoman.bridge.delivery import JournalStore, ListPlace, StoredJournal, Viewer
from dragoman.bridge.registry.labels import GROUPS, SESSIONS, SessionLabel, SessionLabels, describe_label, group_of
from dragoman.bridge.registry.session import ServedSession
from dragoman.bridge.registry.session_updates import to_iso
from dragoman.store.naming import normalise


class ListEntry(NamedTuple):
    """A session of a list."""

    place: ListPlace
    session: ServedSession | StoredJournal

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.place[1]

    @property
    def cwd(self) -> str:
        """The directory of the session."""
        return self.session.header.cwd if isinstance(self.session, StoredJournal) else self.session.cwd


class SessionLists:
    """The lists of one agent's sessions, open here or not."""

    def __init__(self, sessions: dict[str, ServedSession], journals: JournalStore, labels: SessionLabels) -> None:
        self._sessions = sessions
        self._journals = journals
        self._labels = labels
        journals.group_of = lambda session_id: group_of(labels.of(session_id))
        labels.on_taken = self._regroup

    def newest(
        self, viewer: Viewer, groups: Iterable[str] = GROUPS, cwd: str | None = None, before: ListPlace | None = None
    ) -> Iterator[ListEntry]:
        """Give the sessions of a list one by one, the latest first, behind a place, of those that a viewer may see."""
        wanted = frozenset(groups)
        if viewer.access.session_id is not None:
            return self._only(viewer.access.session_id, wanted, cwd, before)
        here = (each for each in self._open_ones(wanted, cwd) if before is None or each.place < before)
        stored = self._journals.stored.newest(wanted, cwd, before)
        there = (ListEntry(each.place, each) for each in stored)
        return heapq.merge(sorted(here, key=_place_of, reverse=True), there, key=_place_of, reverse=True)

    def newest_projects(self, viewer: Viewer, before: ListPlace | None, most: int) -> list[tuple[ListPlace, str]]:
        """Give the directories that sessions of people are in, with the place of the latest session of each."""
        found = {} if viewer.is_scoped else self._journals.stored.newest_by_cwd(SESSIONS)
        open_ones = self.newest(viewer, (SESSIONS,)) if viewer.is_scoped else self._open_ones({SESSIONS}, None)
        for each in open_ones:
            cwd = normalise(each.cwd)
            found[cwd] = max(found.get(cwd, each.place), each.place)
        places = ((place, cwd) for cwd, place in found.items() if before is None or place < before)
        return heapq.nlargest(most, places)

    def count(self, viewer: Viewer) -> dict[str, int]:
        """Tell how many sessions each group has that a viewer may see."""
        counts = {name: 0 if viewer.is_scoped else self._journals.stored.count(name) for name in GROUPS}
        for each in self.newest(viewer) if viewer.is_scoped else self._open_ones(GROUPS, None):
            group = group_of(self.label_of(each))
            if group is not None:
                counts[group] += 1
        return counts

    def busy(self, viewer: Viewer) -> Iterator[ListEntry]:
        """Give the sessions that are at work or have a question that waits, subagents among them."""
        for session in self._sessions.values():
            if (session.state == "running" or session.info.questions) and viewer.sees(session.id):
                yield _entry_of(session)
        for session_id in self._journals.stored.busy:
            if viewer.sees(session_id):
                stored = self._journals.stored[session_id]
                yield ListEntry(stored.place, stored)

    def find(self, session_id: str) -> ListEntry | None:
        """Give a session that was prompted or that somebody has open, also a subagent."""
        session = self._sessions.get(session_id)
        if session is not None:
            return _entry_of(session) if _is_shown(session) else None
        stored = self._journals.stored.get(session_id)
        return ListEntry(stored.place, stored) if stored is not None and stored.prompted else None

    def label_of(self, listed: ListEntry) -> SessionLabel:
        """Return the label of a session of a list: that of a new subagent is known before it is written."""
        of = listed.session
        return self._labels.of(of.header.id) if isinstance(of, StoredJournal) else of.info.label

    def title_of(self, listed: ListEntry) -> str:
        """Return the title of a session of a list; empty if it has none."""
        of = listed.session
        if not isinstance(of, StoredJournal):
            return of.info.title or ""
        told = of.title if of.described is None else of.described.get("title")
        return self._labels.of(of.header.id).title or told or ""

    def describe(self, listed: ListEntry) -> dict[str, Any]:
        """Give the params of `_dragoman/session` for a session of a list."""
        of = listed.session
        return self.describe_stored(of) if isinstance(of, StoredJournal) else of.describe()

    def describe_stored(self, stored: StoredJournal) -> dict[str, Any]:
        """Give the params of `_dragoman/session` for a session that is not open here."""
        label = self._labels.of(stored.header.id)
        if stored.described is not None:
            return {"updatedAt": to_iso(stored.updated_ms), **stored.described, **describe_label(label)}
        return {
            "sessionId": stored.header.id,
            "cwd": stored.header.cwd,
            "title": label.title or stored.title,
            "state": "asleep",
            "pending": 0,
            "viewers": 0,
            "updatedAt": to_iso(stored.updated_ms),
            **describe_label(label),
        }

    def _regroup(self, session_id: str) -> None:
        self._journals.stored.regroup(session_id)

    def _open_ones(self, groups: Collection[str | None], cwd: str | None) -> Iterator[ListEntry]:
        wanted = None if cwd is None else normalise(cwd)
        for session in self._sessions.values():
            is_there = wanted is None or normalise(session.cwd) == wanted
            if is_there and _is_shown(session) and group_of(session.info.label) in groups:
                yield _entry_of(session)

    def _only(
        self, session_id: str, groups: frozenset[str], cwd: str | None, before: ListPlace | None
    ) -> Iterator[ListEntry]:
        """Give the one session that a viewer may see, if it is in the list."""
        listed = self.find(session_id)
        if listed is None or group_of(self.label_of(listed)) not in groups:
            return
        if (before is None or listed.place < before) and (cwd is None or normalise(listed.cwd) == normalise(cwd)):
            yield listed


def _place_of(listed: ListEntry) -> ListPlace:
    return listed.place


def _entry_of(session: ServedSession) -> ListEntry:
    return ListEntry((session.journal.updated_ms, session.id), session)


def _is_shown(session: ServedSession) -> bool:
    return session.info.prompted or bool(session.subscriptions)
