"""Messages alone, one a line, as acpx writes them: nothing tells who sent them but what they are.

The journal of an acpx session has lines of its own between them. It goes on when acpx has started the agent anew, which
shows by another `initialize`: each is a conversation.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.check.conversation import Conversation
from dragoman.check.trace.direction import Directions
from dragoman.check.trace.source import Source

_MESSAGE = frozenset({"jsonrpc", "method", "result", "error"})
_JOURNAL = "acpx."
"""How the schema of a line begins that is acpx's own."""


def is_bare(first: dict[str, Any]) -> bool:
    """Tell whether the first object of a file is a message by itself, or begins a journal of acpx."""
    return _is_mark(first) or (bool(first.keys() & _MESSAGE) and ("jsonrpc" in first or "id" in first))


def read_bare(source: Source) -> Iterator[Conversation]:
    """Yield the conversations of the file, one for each start of the agent. Raises TraceUnreadable."""
    directions = Directions()
    conversation = Conversation(source.path)
    count = 1
    for number, message in source.objects():
        if _is_mark(message):
            continue
        if not message.keys() & _MESSAGE:
            raise source.unreadable("expected a message, which has a method, a result or an error", number)
        if message.get("method") == "initialize" and conversation.entries:
            yield conversation
            count += 1
            directions = Directions()
            conversation = Conversation(f"{source.path} ({count})")
        conversation.add(directions.tell(message), msgspec.json.encode(message))
    yield conversation


def _is_mark(value: dict[str, Any]) -> bool:
    return "jsonrpc" not in value and str(value.get("schema", "")).startswith(_JOURNAL)
