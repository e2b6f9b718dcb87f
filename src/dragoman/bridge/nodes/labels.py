"""Labels of sessions in the database: every node has all of them in memory, and is told of changes."""

import errno
from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman.bridge.registry import NO_LABEL, SessionLabel, SessionLabels
from dragoman.cancellation import finish
from dragoman.errors import DragomanError
from dragoman.store.postgresql.label_table import LabelTable

_LAST_WRITE_S = 2.0
"""For a label that is being written when the bridge ends."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(SessionLabel).decode


class DatabaseLabels(SessionLabels):
    """The labels of one agent's sessions, in memory and in the database."""

    def __init__(self, table: LabelTable, on_change: Callable[[str, bytes], None]) -> None:
        super().__init__(Path())
        self._table = table
        self._on_change = on_change

    async def read(self) -> None:
        """Read all labels; raises LogFailed."""
        async with self._writing:
            self._labels = {session_id: _decode(label) for session_id, label in (await self._table.read()).items()}

    def take_told(self, session_id: str, label: bytes) -> None:
        """Keep a label that another node has written."""
        self.take(session_id, _decode(label))

    async def _write(self, session_id: str, label: SessionLabel) -> None:
        written = _encode(label)
        try:
            await finish(self._table.put(session_id, None if label == NO_LABEL else written), limit_s=_LAST_WRITE_S)
        except DragomanError as error:
            raise OSError(errno.EIO, str(error)) from error
        self._on_change(session_id, written)
