"""Updates that a viewer does not take, by its capabilities: compactions, subagents, messages between sessions.

The agent sends them because the bridge or another viewer takes them, and the journal has them. A viewer that does not
is told their words as a thought, which no client takes for the answer. One update stays one update, so that cursors
are the same for everybody.
"""

from collections.abc import Callable
from functools import cache

import msgspec
from msgspec import UNSET

from dragoman.bridge.envelope import decode_fields, fields_of, string_of, with_update
from dragoman.protocol.translate.session_for_v1 import ClientTakes, words_of

_COMPACTION = frozenset({"compaction_update", "compaction_summary_chunk"})
_SUBAGENTS = frozenset({"subagent_update", "session_message", "session_message_chunk"})
_MARKS = {
    **dict.fromkeys(_COMPACTION, b'"compaction_'),
    "subagent_update": b'"subagent_update"',
    **dict.fromkeys(("session_message", "session_message_chunk"), b'"session_message'),
}
"""Bytes that stand in every such update."""


@cache
def teller_of(takes: ClientTakes) -> Callable[[bytes], bytes] | None:
    """Return the function that changes lines for a viewer, the same for all that take the same; None without need."""
    is_taken = {**dict.fromkeys(_COMPACTION, takes.compaction), **dict.fromkeys(_SUBAGENTS, takes.subagents)}
    untaken = frozenset(kind for kind, taken in is_taken.items() if not taken)
    if not untaken:
        return None
    marks = tuple({_MARKS[kind] for kind in untaken})

    def tell(lines: bytes) -> bytes:
        if not any(mark in lines for mark in marks):
            return lines
        return b"".join(_tell_line(line, untaken) + b"\n" for line in lines[:-1].split(b"\n"))

    return tell


def _tell_line(line: bytes, untaken: frozenset[str]) -> bytes:
    update = fields_of(fields_of(decode_fields(line).get("params", UNSET)).get("update", UNSET))
    if string_of(update.get("sessionUpdate")) not in untaken:
        return line
    words = words_of({key: msgspec.json.decode(value) for key, value in update.items()})
    thought = {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": f"{words}\n\n"}}
    return with_update(line, thought)
