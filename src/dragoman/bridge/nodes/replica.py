"""The journal of a session that this node does not own, as its viewers here read it: from the database."""

import uuid
from typing import Any

from dragoman.bridge.delivery import Cursor, JournalSource, Subscription, TailBudget, Viewer
from dragoman.bridge.delivery.database_journal import read_part
from dragoman.bridge.delivery.journal import find_version, is_all_in, make_epoch, version_of_settings
from dragoman.bridge.delivery.journal_file import JournalPart
from dragoman.bridge.delivery.runs import JournalTail
from dragoman.bridge.translation import V1, Version
from dragoman.store.block import Header
from dragoman.store.postgresql.session_table import SessionTable


class ReplicaJournal(JournalSource):
    """A journal that another node writes, or nobody; it grows by what is committed."""

    def __init__(
        self,
        table: SessionTable,
        key: int,
        header: Header,
        *,
        end: int,
        versions: list[tuple[int, Version]],
        budget: TailBudget,
    ) -> None:
        self.key = key
        self.header = header
        self._table = table
        self._epoch = make_epoch(header)
        self._end = end
        self._tail = JournalTail(budget, self._epoch.encode(), end)
        self._versions = versions

    @property
    def end(self) -> int:
        return self._end

    @property
    def next_end(self) -> int:
        return self._end

    @property
    def epoch(self) -> str:
        return self._epoch

    @property
    def tail(self) -> JournalTail:
        return self._tail

    def has(self, cursor: Cursor) -> bool:
        return cursor.epoch == self._epoch and 0 <= cursor.seq <= self._end

    def cursor(self, seq: int) -> str:
        return f"{self._epoch}.{seq}"

    def version_at(self, seq: int) -> Version:
        return find_version(self._versions, seq)

    def is_all_in(self, version: Version) -> bool:
        return is_all_in(self._versions, version)

    async def read(self, after: int, until: int, *, with_cursors: bool) -> JournalPart:
        return await read_part(self._table, self.key, after, until, self._epoch if with_cursors else None)

    async def follow(self, last: int) -> bool:
        """Read the records up to this one; tells whether there were any. Raises DragomanError."""
        before = self._end
        while self._end < last:
            blocks = await self._table.read_from(self.key, self._end, last)
            if not blocks:
                break
            for block in blocks:
                self._see_versions(block.records())
                for first, count, lines in block.runs():
                    self._tail.extend(first, lines, block.time, count=count)
                self._end = block.last
        return self._end > before

    def _see_versions(self, records: Any) -> None:
        for each in records:
            if each.kind == "config" and each.seq > (self._versions[-1][0] if self._versions else 0):
                version = version_of_settings(bytes(each.data))
                if version != (self._versions[-1][1] if self._versions else V1):
                    self._versions.append((each.seq, version))


class WatchedSession:
    """A session that this node does not own, with the viewers here that follow it."""

    def __init__(self, session_id: str, journal: ReplicaJournal, owner: uuid.UUID | None) -> None:
        self.id = session_id
        self.journal = journal
        self.owner = owner
        """The node that owns it, as far as is known here; None if that one has ended."""
        self.viewers: dict[Viewer, Subscription] = {}

    def subscribe(self, viewer: Viewer, cursor: int, *, has_history: bool) -> Subscription:
        """Put a viewer on it, behind a record."""
        subscription = viewer.subscribe(self.id)
        subscription.bind(self.journal, cursor, has_history=has_history)
        self.viewers[viewer] = subscription
        viewer.wake(subscription)
        return subscription

    def wake_viewers(self) -> None:
        """Have all viewers look at the journal again."""
        for viewer, subscription in self.viewers.items():
            viewer.wake(subscription)
