"""The sessions that the editor has open, with all that is needed to be on them again after a break."""

from typing import Any

from msgspec import Raw

from dragoman.attach.lines import add_mark
from dragoman.wire.envelope import fields_of, string_of

LOAD = "session/load"
RESUME = "session/resume"

_MAKES = frozenset({"session/new", "session/fork"})
_REOPENS = frozenset({LOAD, RESUME})
_ENDS = frozenset({"session/close", "session/delete"})

_NOT_FOR_RESUME = frozenset({"replayFrom", "systemPrompt"})
"""Params that count when a session is opened, and not when a viewer comes back to it."""


class AttachedSessions:
    """The sessions of one editor, by their ids."""

    def __init__(self) -> None:
        self._params: dict[str, Raw] = {}
        """The params that opened each, with its MCP servers: in memory only."""
        self._cursors: dict[str, str | None] = {}
        """The last record that the editor has of each, also of those that it is opening."""

    def ids(self) -> list[str]:
        """Return the ids of the sessions that are open."""
        return list(self._params)

    def begin(self, method: str, session_id: str | None) -> None:
        """Follow a request of the editor that opens a session; a load begins at its start."""
        if session_id is not None and method in _REOPENS:
            kept = self._cursors.get(session_id) if method == RESUME else None
            self._cursors[session_id] = kept

    def end(self, method: str, params: Raw, result: Raw, own: dict[str, Raw]) -> None:
        """Follow the answer to such a request, or to one that ends a session."""
        if method in _ENDS:
            self.forget(string_of(fields_of(params).get("sessionId")))
        elif method in _MAKES or method in _REOPENS:
            session_id = string_of(fields_of(result if method in _MAKES else params).get("sessionId"))
            if session_id is not None:
                self._params[session_id] = Raw(bytes(params))
                self._cursors[session_id] = string_of(own.get("cursor"))

    def forget(self, session_id: str | None) -> None:
        """Have the editor no longer on a session."""
        self._params.pop(session_id or "", None)
        self._cursors.pop(session_id or "", None)

    def note_cursor(self, session_id: str, cursor: str) -> None:
        """Note the last record that the editor has; subagents come and go with their parents."""
        if session_id in self._cursors:
            self._cursors[session_id] = cursor

    def cursor(self, session_id: str | None) -> str | None:
        """Return the last record of a session that the editor has."""
        return self._cursors.get(session_id or "")

    def resume_params(self, session_id: str) -> dict[str, Any]:
        """Return the params of a `session/resume` that goes on where the editor is."""
        params, cursor = self._params[session_id], self._cursors.get(session_id)
        fields = fields_of(params) if cursor is None else add_mark(params, after=cursor)
        kept = {name: value for name, value in fields.items() if name not in _NOT_FOR_RESUME}
        return {**kept, "sessionId": session_id}
