"""The short way for what comes most: pieces of text in a turn that is running.

Agents stream by the word, and a tap has to keep up. A piece of text that fits the schema, in a session whose turn
is running and which has said something before, can break no rule that looks further: it is only counted.
"""

from typing import Any

import msgspec

from dragoman.check.conversation import Entry
from dragoman.check.judge.noise import LONG_BYTES
from dragoman.check.judge.state import State
from dragoman.check.judge.strict import params_decoder, tighten
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.wire.message import is_sound

_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_MARK = b'"session/update"'

OCCASIONS = (
    "ACP-WIRE-001",
    "ACP-WIRE-002",
    "ACP-WIRE-003",
    "ACP-WIRE-004",
    "ACP-WIRE-020",
    "ACP-WIRE-021",
    "ACP-WIRE-022",
    "ACP-EXT-001",
    "ACP-NEW-003",
    "ACP-CONTENT-001",
)
"""What each piece of text is an occasion for."""


class Stream:
    """Takes what it can of the agent's messages off the judge."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._decode = params_decoder(SESSION_UPDATE, "notification").decode
        self._text = tighten(v1.TextContent)
        self._message = tighten(v1.AgentMessageChunk)
        self._chunks = frozenset({self._message, tighten(v1.AgentThoughtChunk)})
        self._taken = 0

    def look(self, entry: Entry) -> Any:
        """Return the update in a line, if it is one and fits the schema."""
        line = entry.line
        if _MARK not in line or len(line) > LONG_BYTES or not is_sound(line):
            return None
        try:
            call = self._decode(line)
        except _REFUSALS:
            return None
        return call.params if call.method == SESSION_UPDATE.name else None

    def take(self, params: Any) -> bool:
        """Count an update, if that is all there is to do about it."""
        update = params.update
        if type(update) not in self._chunks or type(update.content) is not self._text:
            return False
        session = self._state.sessions.get(params.session_id)
        if session is None or not session.is_talking or params.meta is not None:
            return False
        if session.turn is not None and type(update) is self._message:
            session.turn.hear(update.content.text)
        self._taken += 1
        return True

    def drain(self) -> int:
        """Return how many were taken since the last time."""
        taken, self._taken = self._taken, 0
        return taken
