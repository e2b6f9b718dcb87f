"""Journals that nobody has open here, in the order in which lists show them.

Lists are made of groups, such as the archived sessions, and of directories. Each has an order of its own, so that a
page of any list costs the same however many sessions there are. A place in an order is the time of the last change and
the session's id: it stays what it is when others come and go.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import Any

import msgspec

from dragoman.store.block import Header
from dragoman.store.naming import normalise

ListPlace = tuple[int, str]
"""Of a session in a list: the time of its last change, in milliseconds since 1970, and its id."""

GroupOf = Callable[[str], str | None]
"""Names the group of a session; None for one that no list shows."""


class StoredJournal(msgspec.Struct, frozen=True, kw_only=True):
    """A journal that is not open here."""

    header: Header
    """The session that it belongs to."""
    title: str | None
    updated_ms: int
    prompted: bool
    """Whether lists show it: anybody has prompted it, or looks at it on another node."""
    described: dict[str, Any] | None = None
    """The state of the session, as the node announced it that has it open."""

    @property
    def place(self) -> ListPlace:
        """Its place in lists."""
        return self.updated_ms, self.header.id

    @property
    def is_busy(self) -> bool:
        """Whether the session is at work, or has a question that waits."""
        described = self.described or {}
        return described.get("state") == "running" or bool(described.get("pending"))


def one_group(session_id: str) -> str | None:
    """Put every session into the same group."""
    del session_id
    return ""


class _Group:
    """The places of the sessions of one group, the latest last: all, and those of each directory."""

    def __init__(self) -> None:
        self.all: list[ListPlace] = []
        self.by_cwd: dict[str, list[ListPlace]] = {}

    def orders_of(self, stored: StoredJournal) -> tuple[list[ListPlace], list[ListPlace]]:
        return self.all, self.by_cwd.setdefault(normalise(stored.header.cwd), [])

    def add(self, stored: StoredJournal) -> None:
        for order in self.orders_of(stored):
            insort(order, stored.place)

    def remove(self, stored: StoredJournal) -> None:
        for order in self.orders_of(stored):
            del order[bisect_left(order, stored.place)]
        if not self.by_cwd[cwd := normalise(stored.header.cwd)]:
            del self.by_cwd[cwd]


class StoredJournals(MutableMapping[str, StoredJournal]):
    """Journals that are not open here, by session; those that were prompted are also in the orders of their groups."""

    def __init__(self, journals: Iterable[StoredJournal] = (), group_of: GroupOf = one_group) -> None:
        self.busy: dict[str, None] = {}
        """Sessions at work elsewhere, or with a question that waits there."""
        self._group_of = group_of
        self._journals: dict[str, StoredJournal] = {}
        self._groups: dict[str, _Group] = {}
        self._grouped: dict[str, str] = {}
        """In which group each session stands, of those that stand in one."""
        for each in journals:
            if (group := self._keep(each)) is not None:
                for order in group.orders_of(each):
                    order.append(each.place)
        for group in self._groups.values():
            for order in (group.all, *group.by_cwd.values()):
                order.sort()

    def newest(self, groups: Iterable[str], cwd: str | None, before: ListPlace | None) -> Iterator[StoredJournal]:
        """Give those of some groups, the latest first: all or those of a directory, and behind a place."""
        found = [self._groups[name] for name in groups if name in self._groups]
        orders = [group.all if cwd is None else group.by_cwd.get(normalise(cwd), []) for group in found]
        for place in heapq.merge(*(_backwards(order, before) for order in orders), reverse=True):
            yield self._journals[place[1]]

    def count(self, group: str) -> int:
        """Tell how many sessions a group has."""
        return len(self._groups[group].all) if group in self._groups else 0

    def newest_by_cwd(self, group: str) -> dict[str, ListPlace]:
        """Give for each directory of a group the place of its latest session."""
        by_cwd = self._groups[group].by_cwd if group in self._groups else {}
        return {cwd: order[-1] for cwd, order in by_cwd.items()}

    def regroup(self, session_id: str) -> None:
        """Have a session in the group where it now belongs."""
        if (stored := self._journals.get(session_id)) is not None:
            self[session_id] = stored

    def __getitem__(self, session_id: str) -> StoredJournal:
        return self._journals[session_id]

    def __setitem__(self, session_id: str, stored: StoredJournal) -> None:
        self.pop(session_id, None)
        if (group := self._keep(stored)) is not None:
            group.add(stored)

    def __delitem__(self, session_id: str) -> None:
        stored = self._journals.pop(session_id)
        self.busy.pop(session_id, None)
        if (name := self._grouped.pop(session_id, None)) is not None:
            self._groups[name].remove(stored)

    def __iter__(self) -> Iterator[str]:
        return iter(self._journals)

    def __len__(self) -> int:
        return len(self._journals)

    def _keep(self, stored: StoredJournal) -> _Group | None:
        """Keep a journal, and return the group that it is to be put into."""
        session_id = stored.header.id
        self._journals[session_id] = stored
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
