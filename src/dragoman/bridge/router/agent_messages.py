"""Messages of the agent: updates go into the journals of their sessions, requests to viewers that can answer them."""

from collections.abc import Callable, Sequence

from msgspec import UNSET

from dragoman.bridge.delivery import Delivery, Viewer, ViewerRequest
from dragoman.bridge.envelope import (
    ELICIT,
    SUBAGENT,
    UPDATE,
    OrdinaryRun,
    fields_of,
    make_error,
    ordinary_runs,
    rename_request,
    session_of,
    session_of_update,
)
from dragoman.bridge.registry import Announcements, ServedSession, SessionRegistry
from dragoman.bridge.router.agent_request import AgentRequest
from dragoman.bridge.router.logins import REDIRECT, PendingLogins
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.router.viewer_servers import MCP_MESSAGE
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
        logins: PendingLogins,
        turn_ended: Callable[[ServedSession], None],
    ) -> None:
        self._turn_ended = turn_ended
        self._delivery = delivery
        self._supervisor = supervisor
        self._registry = registry
        self._announcements = announcements
        self._questions = questions
        self._logins = logins

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, many in one piece: updates of a session go on as they came, all at once."""
        for block in lines:
            if isinstance(block, Oversized):
                self._take(block)
                continue
            runs = ordinary_runs(block)
            if runs is None:
                for line in block.split(b"\n"):
                    if line and not line.isspace():
                        self._take_line(line)
                continue
            for run in runs:
                self._take_run(run)

    def input_ended(self, *, was_file: bool) -> None:
        """Do nothing: the process itself tells its end."""

    def _take_run(self, run: OrdinaryRun) -> None:
        session = self._registry.sessions.get(run.session_id)
        if session is None:
            for line in run.lines[:-1].split(b"\n"):
                self._registry.early.put(run.session_id, line)
            return
        session.take(run)
        self._delivery.touch(session)

    def _take_line(self, line: bytes) -> None:
        session_id = session_of_update(line) if UPDATE in line and is_sound(line) else None
        if session_id is None:
            self._take(line)
            return
        session = self._registry.sessions.get(session_id)
        if session is None:
            self._registry.early.put(session_id, line)
            return
        self._take_notification(session, line)

    def _take_notification(self, session: ServedSession, line: bytes) -> None:
        if session.take_notification(line):
            self._delivery.sync_soon(session.journal)
            self._turn_ended(session)
        if SUBAGENT in line:
            self._registry.subagents.take_update(session, line)
        self._delivery.touch(session)

    def _take(self, line: bytes | Oversized) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            mended = replace_lone_surrogates(line) if isinstance(line, bytes) else None
            if mended is not None:
                self._take_line(mended)
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
        if method == REDIRECT:
            self._logins.name_redirect(id_, [] if session is None else self._questions.askable(session))
            return
        if method == ELICIT:
            self._logins.note(message.params, session)
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
            self._take_notification(session, line)
            return
        if method == MCP_MESSAGE:
            return  # in MCP over ACP only the side that has the server sends notifications
        for viewer in list(self._delivery.viewers.values()):
            # Names and addresses of accounts are for those who could log in.
            is_for_owners = viewer.read_only and method == "auth/status_update"
            if viewer.capabilities is not None and not is_for_owners and not viewer.is_scoped:
                viewer.send(line)
