"""The journals of one agent on the disk: `<home>/bridge/<agent>/<hash of the session id>.jsonl`.

Session ids are the agent's, and may be any string: the header of each journal says whose it is.
"""

import asyncio
import hashlib
from contextlib import suppress
from pathlib import Path

from dragoman.bridge.hub.epoch import make_header
from dragoman.bridge.hub.history import Block, Known, copy_lines, look_at, read_block, reopen
from dragoman.bridge.hub.journal import Journal
from dragoman.bridge.hub.tail import TailBudget
from dragoman.errors import SessionUnreadable
from dragoman.store import UNPROMPTED_KEPT_S
from dragoman.store.disk import Disk, make_directories
from dragoman.store.record import now_ms

_HASH_CHARACTERS = 40


class Shelf:
    """Makes journals and finds those of earlier runs."""

    def __init__(self, disk: Disk, directory: Path, budget: TailBudget) -> None:
        self.known: dict[str, Known] = {}
        """Journals that nobody has opened in this run, by session."""
        self._disk = disk
        self._directory = directory
        self._budget = budget

    async def scan(self) -> None:
        """Look at what is there; raises OSError if the directory cannot be made."""
        self.known = await asyncio.to_thread(self._scan)

    def create(self, session_id: str, cwd: str, directories: list[str]) -> Journal:
        """Begin a journal, in place of an older one of that session once `settle` is called."""
        path = self._path(session_id).with_suffix(".new")
        return Journal.create(self._disk, path, make_header(session_id, cwd, directories), self._budget)

    def settle(self, journal: Journal) -> None:
        """Let a new journal take the place of an older one."""
        self.known.pop(journal.header.id, None)
        journal.move(self._path(journal.header.id))

    async def reopen(self, session_id: str) -> Journal | None:
        """Go on with a journal of an earlier run; None if there is none that can be read."""
        known = self.known.get(session_id)
        if known is None:
            return None
        try:
            journal = await asyncio.to_thread(reopen, self._disk, known, self._budget)
        except SessionUnreadable:
            return None
        self.known.pop(session_id, None)
        return journal

    async def title_of(self, journal: Journal) -> str | None:
        """Read the title that the end of a journal says."""
        try:
            known = await asyncio.to_thread(look_at, self._disk, journal.path)
        except (OSError, SessionUnreadable):
            return None
        return known.title if known else None

    async def read(self, journal: Journal, after: int, until: int, *, marked: bool) -> Block:
        """Read messages that are not in memory any more; raises OSError."""
        try:
            return await asyncio.to_thread(read_block, self._disk, journal, after, until, marked=marked)
        except FileNotFoundError:  # it was renamed meanwhile: its path is another now
            return await asyncio.to_thread(read_block, self._disk, journal, after, until, marked=marked)

    async def copy_for(self, journal: Journal, session_id: str) -> list[bytes]:
        """Give all messages of a journal as if they were of another session; what cannot be read is left out."""
        try:
            return await asyncio.to_thread(copy_lines, self._disk, journal, session_id)
        except OSError:
            return []

    def forget(self, session_id: str) -> None:
        """Delete the journal of a session that is not open."""
        known = self.known.pop(session_id, None)
        if known is not None:
            with suppress(OSError):
                known.path.unlink()

    def _path(self, session_id: str) -> Path:
        name = hashlib.sha256(session_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
        return self._directory / f"{name}.jsonl"

    def _scan(self) -> dict[str, Known]:
        make_directories(self._disk, self._directory)
        found: dict[str, Known] = {}
        oldest_ms = now_ms() - int(1000 * UNPROMPTED_KEPT_S)
        for path in self._directory.glob("*.jsonl"):
            with suppress(OSError, SessionUnreadable):
                known = look_at(self._disk, path)
                if known is None or self._path(known.header.id) != path:
                    continue
                if known.prompted or known.updated_ms >= oldest_ms:
                    found[known.header.id] = known
                else:
                    path.unlink()
        for left in self._directory.glob("*.new"):
            with suppress(OSError):
                left.unlink()
        return found
