"""A fork from before a message: the client names the message, and the copy has the turns before it.

ACP's `session/fork` copies a whole session. A client that has seen `dragoman/fork` in the capabilities may send
`_meta["dragoman/fork"] = {"before": {"ids": […]}}`: the ids of the message and of those of the user after it. The copy
ends before the first of them that began a turn. A message that was refused began none, so the copy then ends before the
next one; if no message is left, the copy is whole. A client that has no ids sends `{"before": {"text": …,
"occurrence": …}}`: the text of the message, and which of the messages with this text it is, counted from 1. The answer
has the number of turns that the copy has, under the same key.
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
    """A message of the user: its id and those of the later ones, or its whole text, and which of those with it."""

    ids: list[str] = []
    text: str | None = None
    occurrence: int = 1


class _Wish(msgspec.Struct, frozen=True):
    before: NamedMessage


class ForkPoint(msgspec.Struct, frozen=True):
    """A place in a log before which a copy ends."""

    seq: int | None
    """The number of the line that begins the turn; None for the end of the log."""
    turns: int
    """The number of turns before it."""


class _Content(msgspec.Struct):
    type: str
    text: str = ""


class _Update(msgspec.Struct, rename="camel"):
    content: _Content
    message_id: str | None = None


class _Params(msgspec.Struct):
    update: _Update


class _UserLine(msgspec.Struct):
    params: _Params


class _Prompt(msgspec.Struct):
    seq: int
    """The first line of its turn."""
    text: str = ""
    message_id: str | None = None


_decode_user_line = msgspec.json.Decoder(_UserLine).decode


def read_fork_wish(meta: dict[str, Any] | None) -> NamedMessage | None:
    """Read the message before which a fork is to end; None for a whole copy. Raises InvalidParams."""
    wish = (meta or {}).get(FORK_KEY)
    if wish is None:
        return None
    try:
        message = msgspec.convert(wish, _Wish).before
    except msgspec.ValidationError as error:
        raise InvalidParams(_PLACE, f"{_PLACE}: {error}") from None
    if not message.ids and message.text is None:
        raise InvalidParams(f"{_PLACE}.before", "name the message, by its ids or by its text")
    return message


async def find_fork_point(log: Log, wanted: NamedMessage) -> ForkPoint:
    """Find the turn that a message began; raises InvalidParams if no turn did."""
    ids, found, turns = set(wanted.ids), 0, 0
    async for prompt in _prompts(log):
        is_same = prompt.message_id in ids if ids else prompt.text == wanted.text
        found += is_same
        if is_same and (ids or found == wanted.occurrence):
            return ForkPoint(prompt.seq, turns)
        turns += 1
    if ids:
        return ForkPoint(None, turns)
    problem = "this session has no such message of the user; without it the whole session is copied"
    raise InvalidParams(f"{_PLACE}.before", problem)


async def _prompts(log: Log) -> AsyncIterator[_Prompt]:
    """Give the prompt of each turn."""
    prompt: _Prompt | None = None
    async for blocks in log.blocks():
        for seq, line in [line for block in blocks for line in block.numbered_lines()]:
            if line.startswith(_TURN_START):
                if prompt is not None:
                    yield prompt
                prompt = _Prompt(seq)
            elif prompt is not None and _USER_CHUNK in line:
                update = _decode_user_line(line).params.update
                prompt.text += update.content.text
                prompt.message_id = prompt.message_id or update.message_id
    if prompt is not None:
        yield prompt
