"""A request of a viewer."""

from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Raw

from dragoman.bridge.envelope import make_error, make_result, session_of, with_id
from dragoman.bridge.hub.attachment import Attachment
from dragoman.bridge.supervisor import AgentFailure
from dragoman.errors import ErrorCode
from dragoman.wire.message import NULL_ID

if TYPE_CHECKING:
    from dragoman.bridge.hub.viewer import Viewer

_unnamed = count(1)


class Request(msgspec.Struct):
    """A request, as it came and taken apart; answered exactly once."""

    viewer: "Viewer"
    id: bytes
    method: str
    params: Raw
    line: bytes
    key: bytes = b""
    """What it is counted as: its id, or something of ours for one that has none of its own."""
    is_over: bool = False
    """Whether it was answered; what else would answer it comes too late."""

    @property
    def session_id(self) -> str | None:
        """The session that it is about."""
        return session_of(self.params)

    def begin(self) -> None:
        """Count it as under way."""
        self.key = self.id if self.id != NULL_ID else b"null %d" % next(_unnamed)
        self.viewer.calls[self.key] = b""

    def sent_as(self, agent_id: bytes) -> None:
        """Remember which id it has at the agent, in case it is cancelled."""
        if self.key in self.viewer.calls:
            self.viewer.calls[self.key] = agent_id

    def answer(self, result: Any) -> None:
        """Answer it."""
        self._send(make_result(self.id, result))

    def pass_on(self, line: bytes) -> None:
        """Answer it with what the agent answered."""
        self._send(with_id(line, self.id))

    def refuse(self, code: int, problem: Any) -> None:
        """Answer it with an error in words."""
        self._send(make_error(self.id, code, problem))

    def fail(self, failure: AgentFailure) -> None:
        """Answer that the agent is not there."""
        self.refuse(ErrorCode.INTERNAL_ERROR, failure.data())

    def open_session(self, result: Any, attachment: Attachment, after: int) -> None:
        """Answer a request that opened a session."""
        if self.end():
            self.viewer.open_session(make_result(self.id, result), attachment, after)

    def end(self) -> bool:
        """Count it as answered, and tell whether it was not before."""
        was_over, self.is_over = self.is_over, True
        self.viewer.calls.pop(self.key, None)
        return not was_over

    def _send(self, line: bytes) -> None:
        if self.end():
            self.viewer.send(line, self.viewer.attachments.get(self.session_id or ""))
