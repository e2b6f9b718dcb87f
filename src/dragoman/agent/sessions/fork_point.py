"""A fork that ends before a message, which the client names.

ACP's `session/fork` copies a whole session. If the capabilities contain `dragoman/fork`, a client may send
`_meta["dragoman/fork"] = {"before": {"ids": […]}}` with the IDs of the message and of all later user messages. The copy
ends before the first of them that began a turn. A refused message began no turn, so the next one decides. If none of
them began a turn, the copy is whole. A client without IDs sends `{"before": {"text": …, "occurrence": …}}`: the text of
the message, and which of the messages with this text it is, counted from 1. The response has the number of turns in
the copy under the same key.
"""

from collections.abc import AsyncIterator
from typing import Any

import msgspec

from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.update_lines import decode_update_line
from dragoman.store import History

FORK_KEY = "dragoman/fork"

_PLACE = f"params._meta[{FORK_KEY!r}]"
_TURN_START = b'{"turn":{"event":"start"'
_USER_CHUNK = b'"update":{"sessionUpdate":"user_message_chunk"'


class NamedMessage(msgspec.Struct, frozen=True):
    """A user message, named by its ID and all later IDs, or by its whole text and the occurrence of that text."""

    ids: list[str] = []
    text: str | None = None
    occurrence: int = 1


class _ForkRequest(msgspec.Struct, frozen=True):
    before: NamedMessage


class ForkPoint(msgspec.Struct, frozen=True):
    """The place in a log before which a copy ends."""

    seq: int | None
    """The number of the line that begins the turn. None for the end of the log."""
    turns: int
    """The number of turns before it."""


class _Prompt(msgspec.Struct):
    seq: int
    """The number of the first line of the turn."""
    text: str = ""
    message_id: str | None = None


def read_fork_request(meta: dict[str, Any] | None) -> NamedMessage | None:
    """Return the message before which a fork ends, or None for a whole copy. Raises InvalidParamsError."""
    request = (meta or {}).get(FORK_KEY)
    if request is None:
        return None
    try:
        message = msgspec.convert(request, _ForkRequest).before
    except msgspec.ValidationError as error:
        raise InvalidParamsError(_PLACE, f"{_PLACE}: {error}") from None
    if not message.ids and message.text is None:
        raise InvalidParamsError(f"{_PLACE}.before", "identify the message by its ids or its text")
    return message


async def find_fork_point(log: History, message: NamedMessage) -> ForkPoint:
    """Find the turn that a message began. Raises InvalidParamsError if it began none."""
    ids, found, turns = set(message.ids), 0, 0
    async for prompt in _prompts(log):
        is_same = prompt.message_id in ids if ids else prompt.text == message.text
        found += is_same
        if is_same and (ids or found == message.occurrence):
            return ForkPoint(prompt.seq, turns)
        turns += 1
    if ids:
        return ForkPoint(None, turns)
    problem = "this session has no such user message; leave it out to copy the whole session"
    raise InvalidParamsError(f"{_PLACE}.before", problem)


async def _prompts(log: History) -> AsyncIterator[_Prompt]:
    """Yield the prompt of each turn."""
    # A turn begins with its start record. The user chunks after that record form its prompt.
    prompt: _Prompt | None = None
    async for blocks in log.blocks():
        for seq, line in [line for block in blocks for line in block.numbered_lines()]:
            if line.startswith(_TURN_START):
                if prompt is not None:
                    yield prompt
                prompt = _Prompt(seq)
            elif prompt is not None and _USER_CHUNK in line:
                update = decode_update_line(line).update
                if isinstance(update, v1.UserMessageChunk):
                    prompt.text += update.content.text if isinstance(update.content, v1.TextContent) else ""
                    prompt.message_id = prompt.message_id or update.message_id
    if prompt is not None:
        yield prompt
