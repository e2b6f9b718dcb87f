"""Requests of the agent that the editor has not answered.

A restarted bridge may reuse the ids of its requests, so the relay gives each request a new id for the editor. A broken
connection does not withdraw a question (a permission request or a form) while the user thinks about it. The bridge
sends the question again over the next connection, and the relay recognizes it by its params.
"""

import msgspec

QUESTIONS = frozenset({"session/request_permission", "elicitation/create"})


class AskedRequest(msgspec.Struct, eq=False):
    """One request of the agent."""

    editor_id: bytes
    method: str
    params: bytes
    session_id: str | None
    bridge_id: bytes | None
    """None while the connection is broken."""
    answer: bytes | None = None
    """The editor's answer, kept until the bridge is back."""

    @property
    def is_question(self) -> bool:
        """Whether the user answers it."""
        return self.method in QUESTIONS


class AskedRequests:
    """All open requests of the agent."""

    def __init__(self) -> None:
        self._open: dict[bytes, AskedRequest] = {}
        """The requests by their ids at the editor."""
        self._expected: dict[str, int] = {}
        """How many questions of each session the bridge will send again."""
        self._last_id = 0

    def add(self, bridge_id: bytes, method: str, params: bytes, session_id: str | None) -> tuple[AskedRequest, bool]:
        """Add a request from the bridge. Return it, and whether the editor already has it."""
        for known in self._open.values():
            if known.bridge_id is None and (known.method, known.params) == (method, params):
                known.bridge_id = bridge_id
                return known, True
        self._last_id += 1
        asked = AskedRequest(b"%d" % self._last_id, method, params, session_id, bridge_id)
        self._open[asked.editor_id] = asked
        return asked, False

    def add_answer(self, editor_id: bytes, line: bytes) -> AskedRequest | None:
        """Add the editor's answer. Return the request if the bridge is connected and can receive the answer."""
        asked = self._open.get(editor_id)
        if asked is None:
            return None
        if asked.bridge_id is None:
            asked.answer = line
            return None
        return self._open.pop(editor_id)

    def pop_answer(self, asked: AskedRequest) -> bytes | None:
        """Return the answer that arrived while the bridge was away, and remove its request."""
        if asked.answer is not None:
            self._open.pop(asked.editor_id, None)
        return asked.answer

    def find(self, bridge_id: bytes) -> AskedRequest | None:
        """Return a request by its id at the bridge, or None."""
        return next((each for each in self._open.values() if each.bridge_id == bridge_id), None)

    def lose_connection(self) -> list[AskedRequest]:
        """Keep the questions. Remove and return the other requests, which the bridge has answered with an error."""
        self._expected.clear()
        dropped = [each for each in self._open.values() if not each.is_question]
        for each in dropped:
            del self._open[each.editor_id]
        for each in self._open.values():
            each.bridge_id = None
        return dropped

    def expect(self, session_id: str, count: int) -> list[AskedRequest]:
        """Expect this many questions of a session again. Return the questions that were settled during the break."""
        if count:
            self._expected[session_id] = count
            return []
        return self._settle(session_id)

    def count_asked(self, session_id: str | None) -> list[AskedRequest]:
        """Count a repeated question. After the last one, return the questions that were settled during the break."""
        left = self._expected.pop(session_id or "", 0) - 1
        if session_id is None or left < 0:
            return []
        return self.expect(session_id, left)

    def _settle(self, session_id: str) -> list[AskedRequest]:
        settled = [each for each in self._open.values() if each.session_id == session_id and each.bridge_id is None]
        for each in settled:
            del self._open[each.editor_id]
        return [each for each in settled if each.answer is None]
