"""The editor's open sessions, with the params and cursors that resume them after a break."""

from typing import Any

from msgspec import Raw

from dragoman.attach.lines import add_mark
from dragoman.wire.envelope import fields_of, session_of, string_of

LOAD = "session/load"
RESUME = "session/resume"

_MAKES = frozenset({"session/new", "session/fork"})
_REOPENS = frozenset({LOAD, RESUME})
_ENDS = frozenset({"session/close", "session/delete"})

_NOT_FOR_RESUME = frozenset({"replayFrom", "systemPrompt"})
"""Params that only apply when a session is first opened."""


class AttachedSessions:
    """The sessions of one editor, by their ids."""

    def __init__(self) -> None:
        self._params: dict[str, Raw] = {}
        """The params that opened each session, kept in memory only, because its MCP servers may contain secrets."""
        self._cursors: dict[str, str | None] = {}
        """The last record that the editor has of each session, including the sessions that are being opened."""

    def ids(self) -> list[str]:
        """Return the ids of the open sessions."""
        return list(self._params)

    def begin(self, method: str, session_id: str | None) -> None:
        """Track a request that opens a session. A load replays from the start."""
        if session_id is not None and method in _REOPENS:
            kept = self._cursors.get(session_id) if method == RESUME else None
            self._cursors[session_id] = kept

    def end(self, method: str, params: Raw, result: Raw, own: dict[str, Raw]) -> None:
        """Track the answer to a request that opens or ends a session."""
        if method in _ENDS:
            self.forget(session_of(params))
        elif method in _MAKES or method in _REOPENS:
            session_id = session_of(result if method in _MAKES else params)
            if session_id is not None:
                self._params[session_id] = Raw(bytes(params))
                self._cursors[session_id] = string_of(own.get("cursor"))

    def forget(self, session_id: str | None) -> None:
        """Remove a session that the editor no longer has open."""
        self._params.pop(session_id or "", None)
        self._cursors.pop(session_id or "", None)

    def record_cursor(self, session_id: str, cursor: str) -> None:
        """Store the last record that the editor has. Subagents are ignored, because they follow their parents."""
        if session_id in self._cursors:
            self._cursors[session_id] = cursor

    def cursor(self, session_id: str | None) -> str | None:
        """Return the cursor of the last record that the editor has of a session."""
        return self._cursors.get(session_id or "")

    def resume_params(self, session_id: str) -> dict[str, Any]:
        """Return the params of a `session/resume` that continues after the editor's last record."""
        params, cursor = self._params[session_id], self._cursors.get(session_id)
        fields = fields_of(params) if cursor is None else add_mark(params, after=cursor)
        kept = {name: value for name, value in fields.items() if name not in _NOT_FOR_RESUME}
        return {**kept, "sessionId": session_id}
