"""The journals of one agent: those that are open, and those that nobody has opened in this run.

They are in files (`file_journal_store`) or in a database that several nodes share (`database_journal_store`).
"""

from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Protocol

import msgspec

from dragoman.bridge.delivery.journal import EarlierRun, EarlierTurn, Journal, version_of_settings
from dragoman.bridge.delivery.runs import MessageRun
from dragoman.bridge.delivery.stored_journals import GroupOf, StoredJournals
from dragoman.bridge.translation import V1, Version
from dragoman.store.block import Block

_MAX_TURNS = 64
"""Turns whose keys are remembered: more than a client has waiting for an answer."""

_USER = b'"user_message'
"""The beginning of the kinds of the user's messages: chunks, and in version 2 whole messages."""

_IS_START = b'"start"'


class PromptCounter:
    """Counts the user's messages among the notifications of a session: chunks in a row are one."""

    __slots__ = ("_within", "value")

    def __init__(self) -> None:
        self.value = 0
        self._within = False

    def see(self, lines: bytes) -> None:
        """Count the next notifications."""
        if _USER not in lines:
            self._within = False
            return
        for line in lines[:-1].split(b"\n"):
            is_user = _USER in line
            self.value += is_user and not self._within
            self._within = is_user


class ReplayedJournal:
    """A journal of the agent's replay, of a session that has a journal already.

    It is kept apart until the replay is complete. The older journal has what the agent may have forgotten, and every
    cursor into it holds; the agent has what was said while the session was open elsewhere. The one with more of the
    user's messages stays.
    """

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self._prompts = PromptCounter()

    def add(self, lines: bytes, count: int | None = None) -> None:
        """Add replayed notifications."""
        self._prompts.see(lines)
        self.journal.add(lines, count)

    def has_more_than(self, journal: Journal) -> bool:
        """Tell whether the session went on elsewhere since that journal was closed."""
        return not self.journal.is_lost and self._prompts.value > journal.earlier.prompts


class EarlierBlocks:
    """Gathers from the blocks of a journal what an earlier run of the bridge left there."""

    def __init__(self) -> None:
        self._config: bytes | None = None
        self._versions: list[tuple[int, Version]] = []
        self._turns: dict[str, EarlierTurn] = {}
        self._prompts = PromptCounter()
        self._has_open_turn = False

    def see(self, block: Block) -> None:
        """Look at the next block."""
        for _, _, lines in block.runs():
            self._prompts.see(lines)
        for each in block.records():
            if each.kind == "config":
                self._config = bytes(each.data)
                version = version_of_settings(self._config)
                if version != (self._versions[-1][1] if self._versions else V1):
                    self._versions.append((each.seq, version))
            elif each.kind == "turn":
                self._has_open_turn = _IS_START in bytes(each.data)
                _note_turn(self._turns, bytes(each.data))

    def result(self) -> EarlierRun:
        """Return what was found."""
        return EarlierRun(
            self._config, self._prompts.value, tuple(self._versions), self._turns, has_open_turn=self._has_open_turn
        )


class _KeyedTurn(msgspec.Struct, rename="camel"):
    key: str
    stop_reason: str | None = None
    error: msgspec.Raw | None = None


def _note_turn(turns: dict[str, EarlierTurn], record: bytes) -> None:
    """Note the start or the end of a turn whose prompt had a key; the latest are kept."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        turn = msgspec.json.decode(record, type=_KeyedTurn)
        error = None if turn.error is None else msgspec.Raw(bytes(turn.error))
        turns[turn.key] = EarlierTurn(turn.stop_reason, error)
        if len(turns) > _MAX_TURNS:
            del turns[next(iter(turns))]


class JournalStore(Protocol):
    """Makes journals, and finds those of earlier runs and of other nodes."""

    stored: StoredJournals
    """Journals that are not open here."""
    is_shared: bool
    """Whether other nodes have sessions there too."""
    group_of: GroupOf
    """Names the group of lists in which a session is."""

    async def scan(self) -> None:
        """Look at the journals of earlier runs; raises OSError, LogFailed."""
        ...

    def create(self, session_id: str, cwd: str, directories: list[str]) -> Journal:
        """Begin a journal, which takes the place of an older one of that session once `settle` is called."""
        ...

    def settle(self, journal: Journal) -> None:
        """Let a new journal take the place of an older one."""
        ...

    async def reopen(self, session_id: str) -> Journal | None:
        """Go on with a journal of an earlier run; None if there is none that can be read. Raises OSError, LogFailed."""
        ...

    async def title_of(self, journal: Journal) -> str | None:
        """Read the title at the end of a journal."""
        ...

    async def copy_for(self, journal: Journal, session_id: str) -> list[tuple[Version, bytes]]:
        """Give all messages of a journal as if they were of another session; unreadable ones are left out.

        They come in pieces, each with the version of ACP in which it is.
        """
        ...

    def read_stored(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        """Read the messages of a journal that is not open here, in parts; raises OSError and DragomanError."""
        ...

    def delete(self, session_id: str) -> None:
        """Delete the journal of a session that is not open."""
        ...
