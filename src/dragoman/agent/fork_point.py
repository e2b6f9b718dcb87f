"""A fork from before a message: the client names the message, and the copy has the turns before it.

ACP's `session/fork` copies a whole session. A client that has seen `dragoman/fork` in the capabilities may send
`_meta["dragoman/fork"] = {"before": {"text": …, "occurrence": …}}`: the text of a message of the user, and which of the
messages with this text it is, counted from 1. The answer has the number of turns that the copy has, under the same key.
A message is named by its text because the ids of messages are the agent's: a client has not seen one for its own.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from dragoman.errors import InvalidParams
from dragoman.store import Log

FORK_KEY = "dragoman/fork"

_PLACE = f"params._meta[{FORK_KEY!r}]"
_TURN_START = b'{"turn":{"event":"start"'
_USER_CHUNK = b'"update":{"sessionUpdate":"user_message_chunk"'


class NamedMessage(msgspec.Struct, frozen=True):
    """A message of the user: its whole text, and which of those with this text it is."""

    text: str
    occurrence: int = 1


class _Wish(msgspec.Struct, frozen=True):
    before: NamedMessage


class ForkPoint(msgspec.Struct, frozen=True):
    """A place in a log before which a copy ends."""

    seq: int
    """The number of the line that begins the turn."""
    turns: int
    """The number of turns before it."""


class _Content(msgspec.Struct):
    type: str
    text: str = ""


class _Update(msgspec.Struct):
    content: _Content


class _Params(msgspec.Struct):
    update: _Update


class _UserLine(msgspec.Struct):
    params: _Params


_decode_user_line = msgspec.json.Decoder(_UserLine).decode


def read_fork_wish(meta: dict[str, Any] | None) -> NamedMessage | None:
    """Read the message before which a fork is to end; None for a whole copy. Raises InvalidParams."""
    wish = (meta or {}).get(FORK_KEY)
    if wish is None:
        return None
    try:
        return msgspec.convert(wish, _Wish).before
    except msgspec.ValidationError as error:
        raise InvalidParams(_PLACE, f"{_PLACE}: {error}") from None


async def find_fork_point(log: Log, wanted: NamedMessage) -> ForkPoint:
    """Find the turn that a message began; raises InvalidParams if no turn did."""
    found = turns = 0
    async for seq, text in _prompts(log):
        found += text == wanted.text
        if found == wanted.occurrence and text == wanted.text:
            return ForkPoint(seq, turns)
        turns += 1
    problem = "this session has no such message of the user; without it the whole session is copied"
    raise InvalidParams(f"{_PLACE}.before", problem)


async def _prompts(log: Log) -> AsyncIterator[tuple[int, str]]:
    """Give the first line of each turn, and the text of its prompt."""
    start, text = 0, ""
    async for blocks in log.blocks():
        for seq, line in [line for block in blocks for line in block.numbered_lines()]:
            if line.startswith(_TURN_START):
                if start:
                    yield start, text
                start, text = seq, ""
            elif start and _USER_CHUNK in line:
                text += _decode_user_line(line).params.update.content.text
    if start:
        yield start, text
