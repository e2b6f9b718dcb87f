"""Labels of sessions in the database: every node has all of them in memory, and is told of changes.

Two nodes may change one label at once. So a change is made to the row as it is in the database, and made again if the
row is another one by then; and a node that is told of a change reads the row.
"""

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman.bridge.registry import NO_LABEL, LabelChanges, SessionLabel, SessionLabels
from dragoman.cancellation import finish
from dragoman.errors import DragomanError
from dragoman.store.postgresql.label_table import LabelTable

_LAST_WRITE_S = 2.0
"""For a label that is being written when the bridge ends."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionLabel).decode


class DatabaseLabels(SessionLabels):
    """The labels of one agent's sessions, in memory and in the database."""

    def __init__(self, table: LabelTable, on_change: Callable[[str], None]) -> None:
        super().__init__(Path())
        self._table = table
        self._on_change = on_change
        self._unread: set[str] = set()
        """Sessions whose labels another node has changed."""

    async def read(self) -> None:
        """Read all labels; raises LogFailed."""
        await self.read_changed()

    async def read_changed(self) -> list[str]:
        """Read all labels, and return the sessions that have another one now; raises LogFailed."""
        async with self._writing:
            found = {session_id: _decode(label) for session_id, label in (await self._table.read()).items()}
            known = {*found, *self.ids()}
            changed = [each for each in known if found.get(each, NO_LABEL) != self.of(each)]
            for session_id in changed:
                self.take(session_id, found.get(session_id, NO_LABEL))
            return changed

    def note_unread(self, session_id: str) -> bool:
        """Note that another node has changed a label; tells whether it is the only one that waits to be read."""
        self._unread.add(session_id)
        return len(self._unread) == 1

    async def read_unread(self) -> set[str]:
        """Read the labels that others have changed, all at once, and return their sessions; raises LogFailed."""
        async with self._writing:
            unread, self._unread = self._unread, set()
            rows = await self._table.get(unread)
            for session_id in unread:
                self.take(session_id, _label_of(rows.get(session_id)))
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
        while True:  # each further round means that another node has made a change, or that an answer was lost
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
