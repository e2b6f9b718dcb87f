"""Requests of the agent that the editor has not answered.

The bridge numbers its requests anew after each start, so that the editor gets them under ids of ours. A break of the
connection does not take a question (a permission, a form) from the person who thinks about it: the bridge asks it again
over the next connection, and then it is known by its params.
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
    """None while the connection on which it came is gone."""
    answer: bytes | None = None
    """The editor's answer, for the bridge to come back."""

    @property
    def is_question(self) -> bool:
        """Whether a person is to answer it."""
        return self.method in QUESTIONS


class AskedRequests:
    """All of them."""

    def __init__(self) -> None:
        self._open: dict[bytes, AskedRequest] = {}
        """By the ids that they have at the editor."""
        self._expected: dict[str, int] = {}
        """By session: how many questions the bridge is about to ask again."""
        self._last_id = 0

    def ask(self, bridge_id: bytes, method: str, params: bytes, session_id: str | None) -> tuple[AskedRequest, bool]:
        """Take a request of the bridge, and tell whether the editor has it already."""
        for known in self._open.values():
            if known.bridge_id is None and (known.method, known.params) == (method, params):
                known.bridge_id = bridge_id
                return known, True
        self._last_id += 1
        asked = AskedRequest(b"%d" % self._last_id, method, params, session_id, bridge_id)
        self._open[asked.editor_id] = asked
        return asked, False

    def answered(self, editor_id: bytes, line: bytes) -> AskedRequest | None:
        """Take an answer of the editor; give the request if the bridge can have it now."""
        asked = self._open.get(editor_id)
        if asked is None:
            return None
        if asked.bridge_id is None:
            asked.answer = line
            return None
        return self._open.pop(editor_id)

    def take_answer(self, asked: AskedRequest) -> bytes | None:
        """Take the answer that the editor gave while the bridge was away."""
        if asked.answer is not None:
            self._open.pop(asked.editor_id, None)
        return asked.answer

    def find(self, bridge_id: bytes) -> AskedRequest | None:
        """Give a request by its id at the bridge."""
        return next((each for each in self._open.values() if each.bridge_id == bridge_id), None)

    def lose_connection(self) -> list[AskedRequest]:
        """Keep the questions, and give up the other requests: the agent was told that nobody answers them."""
        self._expected.clear()
        given_up = [each for each in self._open.values() if not each.is_question]
        for each in given_up:
            del self._open[each.editor_id]
        for each in self._open.values():
            each.bridge_id = None
        return given_up

    def expect(self, session_id: str, count: int) -> list[AskedRequest]:
        """Note how many questions of a session are asked again; gives those that were settled meanwhile."""
        if count:
            self._expected[session_id] = count
            return []
        return self._settle(session_id)

    def note_asked(self, session_id: str | None) -> list[AskedRequest]:
        """Note that a question was asked; after the last expected one, gives those that were settled meanwhile."""
        left = self._expected.pop(session_id or "", 0) - 1
        if session_id is None or left < 0:
            return []
        return self.expect(session_id, left)

    def _settle(self, session_id: str) -> list[AskedRequest]:
        settled = [each for each in self._open.values() if each.session_id == session_id and each.bridge_id is None]
        for each in settled:
            del self._open[each.editor_id]
        return [each for each in settled if each.answer is None]
