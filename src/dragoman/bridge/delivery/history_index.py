"""Keeps the search index of one agent's histories up to date, in parts, so that searches do not wait for it."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from dragoman.bridge.delivery.message_index import IndexedFile, IndexedMessage, MessageIndex, SearchIndexError
from dragoman.store.history import History
from dragoman.store.history_file import HistoryFile

_BATCH_SESSIONS = 100
"""Sessions per transaction. A search waits for the running one."""


class HistoryIndex:
    """The index of all histories of one agent, open and stored."""

    def __init__(self, messages: MessageIndex, find_stored: Callable[[str], IndexedFile | None]) -> None:
        self._messages = messages
        self._find_stored = find_stored
        self._changed: set[str] = set()
        """Stored histories that may have changed since they were added."""
        self._updating = asyncio.Lock()
        self._is_open = False

    def open(self, session_ids: Iterable[str]) -> None:
        """Open the index. Sessions that are not among the stored ones any more are removed from it."""
        self._is_open = True
        self._changed = set(session_ids)
        kept = frozenset(self._changed)
        self._messages.submit(lambda: self._messages.keep_only(kept))

    def changed(self, session_id: str) -> None:
        """Note that a history was put away, and may have grown while it was open."""
        self._changed.add(session_id)

    def removed(self, session_id: str) -> None:
        """Remove a deleted session."""
        self._changed.discard(session_id)
        if self._is_open:
            self._messages.submit(lambda: self._messages.remove(session_id))

    def find_behind(self, opened: Iterable[History]) -> list[IndexedFile]:
        """Return the histories that are not in the index as they are now."""
        stored = [each for session_id in self._changed if (each := self._find_stored(session_id)) is not None]
        sizes = self._messages.sizes
        return stored + [
            IndexedFile(each.header.id, each.backend.place, each.backend.start)
            for each in opened
            if isinstance(each.backend, HistoryFile) and sizes.get(each.header.id) != each.backend.size
        ]

    async def update(self, files: Sequence[IndexedFile]) -> None:
        """Add histories to the index. Raises SearchIndexError."""
        async with self._updating:
            for begin in range(0, len(files), _BATCH_SESSIONS):
                batch = files[begin : begin + _BATCH_SESSIONS]
                # A history that changes from here on is noted again.
                self._changed.difference_update(file.session_id for file in batch)
                try:
                    await self._messages.run(partial(self._messages.update, batch))
                except SearchIndexError:
                    self._changed.update(file.session_id for file in files)
                    raise

    async def find(self, words: Sequence[str], before: int | None, limit: int) -> list[IndexedMessage]:
        """Return messages that may have all words. See `MessageIndex.find`."""
        return await self._messages.run(partial(self._messages.find, words, before, limit))

    async def read(self, numbers: Sequence[int]) -> list[str]:
        """Return the texts of messages. Raises SearchIndexError."""
        return await self._messages.run(partial(self._messages.read, numbers))

    def lost(self, session_ids: Iterable[str]) -> None:
        """Note that the index was lost and has to be built again from these stored histories."""
        self._changed.update(session_ids)

    def close(self) -> None:
        """Close the database."""
        self._is_open = False
        self._messages.close()
