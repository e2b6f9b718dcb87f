"""Messages of the agent: updates go into journals, answers to viewers, requests to viewers that can answer them."""

from collections.abc import Sequence

from msgspec import UNSET

from dragoman.bridge.delivery import Delivery, Viewer, ViewerRequest
from dragoman.bridge.envelope import (
    ELICIT,
    UPDATE,
    fields_of,
    make_error,
    rename_request,
    session_of,
    session_of_update,
)
from dragoman.bridge.registry import Announcements, SessionRegistry
from dragoman.bridge.router.ownership import Ownership
from dragoman.bridge.router.questions import AgentRequest, Questions
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.message import NULL_ID, is_sound, replace_lone_surrogates


class AgentMessages:
    """Takes the lines of the agent."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        announcements: Announcements,
        questions: Questions,
        ownership: Ownership,
    ) -> None:
        self._delivery = delivery
        self._supervisor = supervisor
        self._registry = registry
        self._announcements = announcements
        self._questions = questions
        self._ownership = ownership

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines; the payload of an update is not decoded on its way."""
        sessions = self._registry.sessions
        for line in lines:
            if isinstance(line, bytes) and UPDATE in line and is_sound(line):
                session_id = session_of_update(line)
                if session_id is not None:
                    session = sessions.get(session_id)
                    if session is None:
                        self._registry.early.put(session_id, line)
                    else:
                        session.take(line)
                        self._delivery.touch(session)
                    continue
            self._take(line)

    def input_ended(self, *, was_file: bool) -> None:
        """Do nothing: the process itself tells its end."""

    def _take(self, line: bytes | Oversized) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            mended = replace_lone_surrogates(line) if isinstance(line, bytes) else None
            if mended is not None:
                self.lines_received([mended])
            else:
                self._refuse(message, line)
        elif message.method is None:
            self._supervisor.calls.settle(message, bytes(line) if isinstance(line, bytes) else b"")
        elif isinstance(line, bytes):
            if message.id is UNSET:
                self._notification(message.method, message, line)
            else:
                self._request(message.method, bytes(message.id), message, line)

    def _refuse(self, malformed: Malformed, line: bytes | Oversized) -> None:
        """Fail the request, on either side, whose message is malformed; else tell that a message was dropped."""
        if isinstance(line, bytes):
            self._supervisor.note_printed(line.decode(errors="replace"))
        if malformed.id != NULL_ID and malformed.answerable:
            self._supervisor.write(make_error(malformed.id, malformed.code, malformed.problem))
            return
        remedy = "" if isinstance(line, bytes) else ": ask for less at a time"
        lost = f"the agent has answered, and its answer was dropped because {malformed.problem}{remedy}"
        has_failed = malformed.id != NULL_ID and self._supervisor.calls.fail(malformed.id, AgentFailure(lost))
        if not has_failed and not isinstance(line, bytes):
            self._announcements.agent_notice(f"a message of the agent was dropped because {malformed.problem}")

    def _request(self, method: str, id_: bytes, message: Message, line: bytes) -> None:
        session = self._registry.find(session_of(message.params))
        viewer: Viewer | None = None
        about = fields_of(message.params).get("requestId") if method == ELICIT and session is None else None
        if about is not None:
            request = self._supervisor.calls.origin_of(bytes(about))
            if isinstance(request, ViewerRequest):
                line, viewer = rename_request(line, request.id), request.viewer
        self._questions.take(AgentRequest(id_, method, message.params, line, session=session, only=viewer))

    def _notification(self, method: str, message: Message, line: bytes) -> None:
        if method == "$/cancel_request":
            cancelled = fields_of(message.params).get("requestId")
            if cancelled is not None:
                self._questions.cancel(bytes(cancelled))
            return
        session = self._registry.find(session_of(message.params))
        if session is not None:
            session.take(line)
            self._delivery.touch(session)
            return
        owner = self._ownership.server_owner(method, message.params)
        for viewer in [owner] if owner is not None else list(self._delivery.viewers.values()):
            if viewer.capabilities is not None:
                viewer.send(line)
