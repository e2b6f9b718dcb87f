"""The facts that an earlier run of the bridge left in a history."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal

import msgspec

from dragoman.bridge.delivery.user_messages import UserMessages
from dragoman.store.block import Block
from dragoman.store.history import History

_MAX_ANSWERS = 64
"""Prompts whose keys are remembered, which is more than a client has waiting for an answer."""


class EarlierRun(msgspec.Struct, frozen=True):
    """The facts that an earlier run of the bridge left in a history."""

    config: bytes | None = None
    """The last settings of the session."""
    last_message: tuple[bytes | None, int] = (None, 0)
    """The digest of the user's last message, and how many such messages there are."""
    answers: Mapping[str, bytes | None] = {}
    """The answers to the last prompts that had a key, by key. None if the turn was interrupted."""
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
        self._answers: dict[str, bytes | None] = {}
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
                with suppress(msgspec.DecodeError, UnicodeDecodeError):
                    self._see_turn(msgspec.json.decode(each.data, type=_TurnRecord))

    def _see_turn(self, turn: "_TurnRecord") -> None:
        if turn.event in ("start", "end"):
            self._has_open_turn = turn.event == "start"
        if turn.key is not None:
            self._answers[turn.key] = bytes(turn.answer) or None
            if len(self._answers) > _MAX_ANSWERS:
                del self._answers[next(iter(self._answers))]

    def result(self) -> EarlierRun:
        """Return the collected facts."""
        self._messages.end_message()
        return EarlierRun(self._config, self._messages.last, self._answers, has_open_turn=self._has_open_turn)


class _TurnRecord(msgspec.Struct):
    event: Literal["start", "prompt", "answer", "end"]
    key: str | None = None
    """The key of a prompt in version 1, whose start this is, of a prompt in version 2, or of an answered prompt."""
    answer: msgspec.Raw = msgspec.Raw()
