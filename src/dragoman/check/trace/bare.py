"""Messages alone, one a line, as acpx writes them: nothing tells who sent them but what they are."""

from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.check.conversation import Conversation
from dragoman.check.trace.direction import Directions
from dragoman.check.trace.source import Source

_MESSAGE = frozenset({"jsonrpc", "method", "result", "error"})


def is_bare(first: dict[str, Any]) -> bool:
    """Tell whether the first object of a file is a message by itself."""
    return bool(first.keys() & _MESSAGE) and ("jsonrpc" in first or "id" in first)


def read_bare(source: Source) -> Iterator[Conversation]:
    """Yield the one conversation of the file. Raises TraceUnreadable."""
    directions = Directions()
    conversation = Conversation(source.path)
    for number, message in source.objects():
        if not message.keys() & _MESSAGE:
            raise source.unreadable("expected a message, which has a method, a result or an error", number)
        conversation.add(directions.tell(message), msgspec.json.encode(message))
    yield conversation
