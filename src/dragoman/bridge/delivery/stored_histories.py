"""Histories that are not open here, in the order of lists.

There is a sorted list per group, such as the archived sessions, and per directory of a group. So the cost of a page
does not depend on the number of sessions. A place in a list is the time of the last change and the session's id. It
does not change when other sessions are added or removed.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from typing import Any

import msgspec

from dragoman.store.naming import normalise

ListPlace = tuple[int, str]
"""The place of a session in a list: the time of its last change, in milliseconds since 1970, and its id."""

SEARCHED_AT_ONCE = 5_000
"""Histories to search before other tasks run, which takes some milliseconds."""

GroupOf = Callable[[str], str | None]
"""Returns the group of a session, or None if no list shows it."""


class StoredHistory(msgspec.Struct, frozen=True, kw_only=True):
    """A history that is not open here. A bridge may have many, so it has only the facts for lists."""

    id: str
    """The session that it belongs to."""
    cwd: str
    title: str | None
    updated_ms: int
    prompted: bool
    """Whether lists show the session, because it was prompted or a viewer has it open on another node."""
    closed: bool = False
    """Whether a viewer has closed the session in this run of the bridge, so that it must be opened before a prompt."""
    described: dict[str, Any] | None = None
    """The state of the session, as announced by the node that has it open."""

    @property
    def place(self) -> ListPlace:
        """The place of the session in lists."""
        return self.updated_ms, self.id

    @property
    def is_busy(self) -> bool:
        """Whether the session is running or has an open question."""
        described = self.described or {}
        return described.get("state") == "running" or bool(described.get("pending"))


def one_group(session_id: str) -> str | None:
    """Put every session into the same group."""
    del session_id
    return ""


class _Group:
    """The places of one group's sessions, latest last, in total and per directory."""

    def __init__(self) -> None:
        self.all: list[ListPlace] = []
        self.by_cwd: dict[str, list[ListPlace]] = {}

    def orders_of(self, stored: StoredHistory) -> tuple[list[ListPlace], list[ListPlace]]:
        return self.all, self.by_cwd.setdefault(normalise(stored.cwd), [])

    def add(self, stored: StoredHistory) -> None:
        place = stored.place
        for order in self.orders_of(stored):
            insort(order, place)

    def remove(self, stored: StoredHistory) -> None:
        for order in self.orders_of(stored):
            del order[bisect_left(order, stored.place)]
        if not self.by_cwd[cwd := normalise(stored.cwd)]:
            del self.by_cwd[cwd]


class StoredHistories(MutableMapping[str, StoredHistory]):
    """Histories that are not open here, by session. Prompted ones are in the sorted lists of their groups."""

    def __init__(self, histories: Iterable[StoredHistory] = (), group_of: GroupOf = one_group) -> None:
        self.busy: dict[str, None] = {}
        """Sessions that are running or have an open question on other nodes."""
        self._group_of = group_of
        self._histories: dict[str, StoredHistory] = {}
        self._groups: dict[str, _Group] = {}
        self._texts: dict[str, str] = {}
        """The texts that a search in titles compares. They are made when they are first needed."""
        self._grouped: dict[str, str] = {}
        """The group of each session that is in a list."""
        for each in histories:
            if (group := self._keep(each)) is not None:
                for order in group.orders_of(each):
                    order.append(each.place)
        for group in self._groups.values():
            for order in (group.all, *group.by_cwd.values()):
                order.sort()

    def newest(self, groups: Iterable[str], cwd: str | None, before: ListPlace | None) -> Iterator[StoredHistory]:
        """Yield the histories of some groups, latest first, of one or all directories, after a place."""
        found = [self._groups[name] for name in groups if name in self._groups]
        orders = [group.all if cwd is None else group.by_cwd.get(normalise(cwd), []) for group in found]
        for place in heapq.merge(*(_backwards(order, before) for order in orders), reverse=True):
            yield self._histories[place[1]]

    def search(
        self,
        words: Sequence[str],
        groups: Iterable[str],
        cwd: str | None,
        text_of: Callable[[StoredHistory], str],
    ) -> Iterator[list[StoredHistory]]:
        """Yield the histories whose text has all words, in parts and in no order. Others may change in between.

        `text_of` returns the text of a history. It is called again after the history or its label has changed.
        """
        found = [self._groups[name] for name in groups if name in self._groups]
        for order in [group.all if cwd is None else group.by_cwd.get(normalise(cwd), []) for group in found]:
            ids = [session_id for _, session_id in order]
            for begin in range(0, len(ids), SEARCHED_AT_ONCE):
                yield [
                    stored
                    for session_id in ids[begin : begin + SEARCHED_AT_ONCE]
                    if (stored := self._histories.get(session_id)) is not None and self._has(stored, words, text_of)
                ]

    def _has(self, stored: StoredHistory, words: Sequence[str], text_of: Callable[[StoredHistory], str]) -> bool:
        text = self._texts.get(stored.id)
        if text is None:
            text = self._texts[stored.id] = text_of(stored)
        return all(word in text for word in words)

    def count(self, group: str) -> int:
        """Return the number of sessions in a group."""
        return len(self._groups[group].all) if group in self._groups else 0

    def newest_by_cwd(self, group: str) -> dict[str, ListPlace]:
        """Return the place of the latest session of each directory in a group."""
        by_cwd = self._groups[group].by_cwd if group in self._groups else {}
        return {cwd: order[-1] for cwd, order in by_cwd.items()}

    def regroup(self, session_id: str) -> None:
        """Move a session to the group that it now belongs to."""
        if (stored := self._histories.get(session_id)) is not None:
            self[session_id] = stored

    def __getitem__(self, session_id: str) -> StoredHistory:
        return self._histories[session_id]

    def __setitem__(self, session_id: str, stored: StoredHistory) -> None:
        self.pop(session_id, None)
        if (group := self._keep(stored)) is not None:
            group.add(stored)

    def __delitem__(self, session_id: str) -> None:
        stored = self._histories.pop(session_id)
        self._texts.pop(session_id, None)
        self.busy.pop(session_id, None)
        if (name := self._grouped.pop(session_id, None)) is not None:
            self._groups[name].remove(stored)

    def __iter__(self) -> Iterator[str]:
        return iter(self._histories)

    def __len__(self) -> int:
        return len(self._histories)

    def _keep(self, stored: StoredHistory) -> _Group | None:
        """Store a history, and return the group that it belongs to."""
        session_id = stored.id
        self._histories[session_id] = stored
        if stored.is_busy:
            self.busy[session_id] = None
        name = self._group_of(session_id) if stored.prompted else None
        if name is None:
            return None
        self._grouped[session_id] = name
        return self._groups.setdefault(name, _Group())


def _backwards(order: list[ListPlace], before: ListPlace | None) -> Iterator[ListPlace]:
    end = len(order) if before is None else bisect_left(order, before)
    return (order[at] for at in range(end - 1, -1, -1))
