"""Session labels in the database. Every node has all of them in memory and is notified of changes.

Two nodes may change a label at the same time. So a change is applied to the row that was read, and is retried if the
row has changed since. A node that is notified of a change reads the row.
"""

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman.bridge.sessions import NO_LABEL, LabelChanges, SessionLabel, SessionLabels
from dragoman.cancellation import finish
from dragoman.errors import DragomanError
from dragoman.store.postgresql.label_table import LabelTable

_LAST_WRITE_S = 2.0
"""Time to finish writing a label when the bridge stops."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionLabel).decode


class DatabaseLabels(SessionLabels):
    """The labels of one agent's sessions, in memory and in the database."""

    def __init__(self, table: LabelTable, on_change: Callable[[str], None]) -> None:
        super().__init__(Path())
        self._table = table
        self._on_change = on_change
        self._unread: set[str] = set()
        """Sessions whose labels another node has changed and this one has not read."""

    async def read(self) -> None:
        """Read all labels. Raises LogError."""
        await self.read_changed()

    async def read_changed(self) -> list[str]:
        """Read all labels, and return the sessions whose labels changed. Raises LogError."""
        async with self._writing:
            found = {session_id: _decode(label) for session_id, label in (await self._table.read()).items()}
            known = {*found, *self.ids()}
            changed = [each for each in known if found.get(each, NO_LABEL) != self.of(each)]
            for session_id in changed:
                self.keep(session_id, found.get(session_id, NO_LABEL))
            return changed

    def record_unread(self, session_id: str) -> bool:
        """Note that another node has changed a label. Return whether no other label waits to be read."""
        self._unread.add(session_id)
        return len(self._unread) == 1

    async def read_unread(self) -> set[str]:
        """Read the labels that other nodes changed in one query, and return their sessions. Raises LogError."""
        async with self._writing:
            unread, self._unread = self._unread, set()
            rows = await self._table.get(unread)
            for session_id in unread:
                self.keep(session_id, _label_of(rows.get(session_id)))
            return unread

    async def _store(self, session_id: str, changes: LabelChanges) -> SessionLabel:
        try:
            return await finish(self._change_row(session_id, changes), limit_s=_LAST_WRITE_S)
        except DragomanError as error:
            raise OSError(errno.EIO, str(error)) from error

    async def _remove(self, session_id: str) -> None:
        try:
            await finish(self._table.remove(session_id), limit_s=_LAST_WRITE_S)
        except DragomanError as error:
            raise OSError(errno.EIO, str(error)) from error
        self._on_change(session_id)

    async def _change_row(self, session_id: str, changes: LabelChanges) -> SessionLabel:
        is_tried = is_written = False
        while True:  # repeated if another node changed the row, or if an answer was lost
            row = (await self._table.get([session_id])).get(session_id)
            before = _label_of(row)
            label = msgspec.structs.replace(before, **changes)
            if label != before:
                is_written = await self._table.replace(session_id, row, None if label == NO_LABEL else _encode(label))
                is_tried = True
            if is_written or label == before:
                if is_tried:
                    self._on_change(session_id)
                return label


def _label_of(row: bytes | None) -> SessionLabel:
    return NO_LABEL if row is None else _decode(row)
