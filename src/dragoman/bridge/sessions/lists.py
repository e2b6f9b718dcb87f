"""The lists of one agent's sessions, latest first. They have sessions that were prompted or that a viewer has open.

A list has the sessions of some groups (`labels.GROUPS`), of one or all directories. It is read in pages. Each page
begins after the place of the last session of the previous page.
"""

import asyncio
import heapq
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from dragoman.bridge.delivery import HistoryStore, ListPlace, StoredHistory
from dragoman.bridge.sessions.labels import GROUPS, SESSIONS, SessionLabel, SessionLabels, describe_label, group_of
from dragoman.bridge.sessions.session import ServedSession
from dragoman.bridge.sessions.updates import to_iso
from dragoman.bridge.viewers import Viewer
from dragoman.store.naming import normalise


class ListEntry(NamedTuple):
    """A session in a list."""

    place: ListPlace
    session: ServedSession | StoredHistory

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.place[1]

    @property
    def cwd(self) -> str:
        """The directory of the session."""
        return self.session.cwd


class SessionLists:
    """The lists of one agent's sessions, both open and stored ones."""

    def __init__(self, sessions: dict[str, ServedSession], histories: HistoryStore, labels: SessionLabels) -> None:
        self._sessions = sessions
        self._histories = histories
        self._labels = labels
        histories.group_of = lambda session_id: group_of(labels.of(session_id))
        labels.on_changed = self._regroup

    def newest(
        self, viewer: Viewer, groups: Iterable[str] = GROUPS, cwd: str | None = None, before: ListPlace | None = None
    ) -> Iterator[ListEntry]:
        """Yield the sessions of a list that a viewer may see, latest first, after a place."""
        wanted = frozenset(groups)
        if viewer.access.session_id is not None:
            return self._only(viewer.access.session_id, wanted, cwd, before)
        here = (each for each in self._open_ones(wanted, cwd) if before is None or each.place < before)
        stored = self._histories.stored.newest(wanted, cwd, before)
        there = (ListEntry(each.place, each) for each in stored)
        return heapq.merge(sorted(here, key=_place_of, reverse=True), there, key=_place_of, reverse=True)

    async def search(
        self, viewer: Viewer, words: Sequence[str], groups: Iterable[str], cwd: str | None, before: ListPlace | None
    ) -> list[ListEntry]:
        """Return the sessions of a list whose title or directory has all words, latest first, after a place."""
        wanted = frozenset(groups)
        is_scoped = viewer.access.session_id is not None
        opened = self.newest(viewer, wanted, cwd) if is_scoped else self._open_ones(wanted, cwd)
        found = [each for each in opened if all(word in self._text_of(each) for word in words)]
        if not is_scoped:
            for part in self._histories.stored.search(words, wanted, cwd, self._text_of_stored):
                found += [ListEntry(each.place, each) for each in part]
                await asyncio.sleep(0)
        unique = {each.id: each for each in found if before is None or each.place < before}  # one may just be opened
        return sorted(unique.values(), key=_place_of, reverse=True)

    def newest_projects(self, viewer: Viewer, before: ListPlace | None, most: int) -> list[tuple[ListPlace, str]]:
        """Return the directories of the sessions that users started, each with the place of its latest session."""
        found = {} if viewer.is_scoped else self._histories.stored.newest_by_cwd(SESSIONS)
        open_ones = self.newest(viewer, (SESSIONS,)) if viewer.is_scoped else self._open_ones({SESSIONS}, None)
        for each in open_ones:
            cwd = normalise(each.cwd)
            found[cwd] = max(found.get(cwd, each.place), each.place)
        places = ((place, cwd) for cwd, place in found.items() if before is None or place < before)
        return heapq.nlargest(most, places)

    def count(self, viewer: Viewer) -> dict[str, int]:
        """Return the number of sessions per group that a viewer may see."""
        counts = {name: 0 if viewer.is_scoped else self._histories.stored.count(name) for name in GROUPS}
        for each in self.newest(viewer) if viewer.is_scoped else self._open_ones(GROUPS, None):
            group = group_of(self.label_of(each))
            if group is not None:
                counts[group] += 1
        return counts

    def busy(self, viewer: Viewer) -> Iterator[ListEntry]:
        """Yield the sessions that are running or have an open question, including subagents."""
        for session in self._sessions.values():
            if (session.state == "running" or session.info.questions) and viewer.sees(session.id):
                yield _entry_of(session)
        for session_id in self._histories.stored.busy:
            if viewer.sees(session_id):
                stored = self._histories.stored[session_id]
                yield ListEntry(stored.place, stored)

    def find(self, session_id: str) -> ListEntry | None:
        """Return a session that was prompted or that a viewer has open. It may be a subagent."""
        session = self._sessions.get(session_id)
        if session is not None:
            return _entry_of(session) if _is_shown(session) else None
        stored = self._histories.stored.get(session_id)
        return ListEntry(stored.place, stored) if stored is not None and stored.prompted else None

    def label_of(self, listed: ListEntry) -> SessionLabel:
        """Return the label of a session. The label of a new subagent is known before it is written."""
        of = listed.session
        return self._labels.of(of.id) if isinstance(of, StoredHistory) else of.info.label

    def title_of(self, listed: ListEntry) -> str:
        """Return the title of a session, or an empty string."""
        of = listed.session
        if not isinstance(of, StoredHistory):
            return of.info.title or ""
        title = of.title if of.described is None else of.described.get("title")
        return self._labels.of(of.id).title or title or ""

    def describe(self, listed: ListEntry) -> dict[str, Any]:
        """Return the params of `_dragoman/session` for a session in a list."""
        of = listed.session
        return self.describe_stored(of) if isinstance(of, StoredHistory) else of.describe()

    def describe_stored(self, stored: StoredHistory) -> dict[str, Any]:
        """Return the params of `_dragoman/session` for a session that is not open here."""
        label = self._labels.of(stored.id)
        if stored.described is not None:
            return {"updatedAt": to_iso(stored.updated_ms), **stored.described, **describe_label(label)}
        return {
            "sessionId": stored.id,
            "cwd": stored.cwd,
            "title": label.title or stored.title,
            "state": "asleep",
            "pending": 0,
            "viewers": 0,
            "updatedAt": to_iso(stored.updated_ms),
            **describe_label(label),
        }

    def _text_of(self, listed: ListEntry) -> str:
        return f"{self.title_of(listed)} {last_name(listed.cwd)}".lower()

    def _text_of_stored(self, stored: StoredHistory) -> str:
        return self._text_of(ListEntry(stored.place, stored))

    def _regroup(self, session_id: str) -> None:
        self._histories.stored.regroup(session_id)

    def _open_ones(self, groups: Collection[str | None], cwd: str | None) -> Iterator[ListEntry]:
        wanted = None if cwd is None else normalise(cwd)
        for session in self._sessions.values():
            is_there = wanted is None or normalise(session.cwd) == wanted
            if is_there and _is_shown(session) and group_of(session.info.label) in groups:
                yield _entry_of(session)

    def _only(
        self, session_id: str, groups: frozenset[str], cwd: str | None, before: ListPlace | None
    ) -> Iterator[ListEntry]:
        """Yield the only session that a viewer may see, if it is in the list."""
        listed = self.find(session_id)
        if listed is None or group_of(self.label_of(listed)) not in groups:
            return
        if (before is None or listed.place < before) and (cwd is None or normalise(listed.cwd) == normalise(cwd)):
            yield listed


def last_name(path: str) -> str:
    """Return the last part of a path, by which the page names a project."""
    return path.replace("\\", "/").rstrip("/").rpartition("/")[2]


def _place_of(listed: ListEntry) -> ListPlace:
    return listed.place


def _entry_of(session: ServedSession) -> ListEntry:
    return ListEntry((session.history.updated_ms, session.id), session)


def _is_shown(session: ServedSession) -> bool:
    return session.info.prompted or bool(session.subscriptions)
