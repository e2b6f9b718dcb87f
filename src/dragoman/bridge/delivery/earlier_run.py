"""The facts that an earlier run of the bridge left in a history."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from dragoman.bridge.delivery.user_messages import UserMessages
from dragoman.store.block import Block
from dragoman.store.history import History

_MAX_TURNS = 64
"""Turns whose keys are remembered, which is more than a client has waiting for an answer."""

_IS_START = b'"start"'


class EarlierTurn(msgspec.Struct, frozen=True):
    """A turn whose prompt had a key. Without an end it was interrupted."""

    stop_reason: str | None = None
    error: msgspec.Raw | None = None


class EarlierRun(msgspec.Struct, frozen=True):
    """The facts that an earlier run of the bridge left in a history."""

    config: bytes | None = None
    """The last settings of the session."""
    last_message: tuple[bytes | None, int] = (None, 0)
    """The digest of the user's last message, and how many such messages there are."""
    turns: Mapping[str, EarlierTurn] = {}
    """The last turns whose prompts had a key, by key."""
    has_open_turn: bool = False
    """Whether its last turn was interrupted."""


async def read_earlier(history: History) -> EarlierRun:
    """Read an opened history to its end, and return the facts of the earlier run. Raises LogError."""
    earlier = _EarlierBlocks()
    async for blocks in history.blocks():
        await asyncio.to_thread(earlier.see, blocks)
    return earlier.result()


class _EarlierBlocks:
    """Gathers the facts from the blocks of a history."""

    def __init__(self) -> None:
        self._config: bytes | None = None
        self._turns: dict[str, EarlierTurn] = {}
        self._messages = UserMessages()
        self._has_open_turn = False

    def see(self, blocks: list[Block]) -> None:
        """Read the next blocks."""
        for block in blocks:
            self._see(block)

    def _see(self, block: Block) -> None:
        reached = block.first
        for first, count, lines in block.runs():
            if first != reached:  # after a record
                self._messages.end_message()
            self._messages.see(lines)
            reached = first + count
        if reached <= block.last:
            self._messages.end_message()
        for each in block.records():
            if each.kind == "config":
                self._config = bytes(each.data)
            elif each.kind == "turn":
                self._has_open_turn = _IS_START in bytes(each.data)
                _record_turn(self._turns, bytes(each.data))

    def result(self) -> EarlierRun:
        """Return the collected facts."""
        self._messages.end_message()
        return EarlierRun(self._config, self._messages.last, self._turns, has_open_turn=self._has_open_turn)


class _KeyedTurn(msgspec.Struct, rename="camel"):
    key: str
    stop_reason: str | None = None
    error: msgspec.Raw | None = None


def _record_turn(turns: dict[str, EarlierTurn], record: bytes) -> None:
    """Record the start or the end of a turn whose prompt had a key. Only the latest turns are kept."""
    with suppress(msgspec.DecodeError, UnicodeDecodeError):
        turn = msgspec.json.decode(record, type=_KeyedTurn)
        error = None if turn.error is None else msgspec.Raw(bytes(turn.error))
        turns[turn.key] = EarlierTurn(turn.stop_reason, error)
        if len(turns) > _MAX_TURNS:
            del turns[next(iter(turns))]
