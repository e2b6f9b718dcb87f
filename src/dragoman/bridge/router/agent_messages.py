"""Messages from the agent.

Updates are appended to the journals of their sessions. Requests are sent to viewers that can answer them. Answers wake
the tasks that await them.
"""

from collections.abc import Callable

from msgspec import UNSET

from dragoman.bridge.agent_link import AgentFailure, AgentLink
from dragoman.bridge.envelope import (
    ELICIT,
    SUBAGENT,
    UPDATE,
    OrdinaryRun,
    ordinary_runs,
    rename_request,
    session_of_update,
)
from dragoman.bridge.router.logins import REDIRECT, PendingLogins
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.sessions.agent_request import AgentRequest
from dragoman.bridge.sessions.ownership import MCP_MESSAGE
from dragoman.bridge.viewers import Delivery, Viewer, ViewerRequest
from dragoman.protocol import methods
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.envelope import fields_of, make_error, session_of
from dragoman.wire.message import NULL_ID, is_sound, replace_lone_surrogates


class AgentMessages:
    """Routes the messages of the agent. Implements `agent_link.AgentReceiver`."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        sessions: ServedSessions,
        logins: PendingLogins,
        turn_ended: Callable[[ServedSession], None],
    ) -> None:
        self._turn_ended = turn_ended
        self._delivery = delivery
        self._sessions = sessions
        self._announcements = sessions.announcements
        self._questions = sessions.questions
        self._logins = logins

    def receive(self, link: AgentLink, block: bytes | Oversized) -> bytes | None:
        """Handle lines up to an awaited answer. Return the lines after it, or None if there was no such answer.

        This is the hot path. A run of ordinary updates is appended as it came, without decoding, a task or a wait.
        """
        if isinstance(block, Oversized):
            return b"" if self._receive(link, block) else None
        runs = ordinary_runs(block)
        if runs is not None:
            for run in runs:
                self._receive_run(run)
            return None
        lines = block.split(b"\n")
        for at, line in enumerate(lines, 1):
            if line and not line.isspace() and self._receive_line(link, line):
                return b"\n".join(lines[at:])
        return None

    def _receive_run(self, run: OrdinaryRun) -> None:
        session = self._sessions.by_id.get(run.session_id)
        if session is None:
            for line in run.lines[:-1].split(b"\n"):
                self._sessions.early.put(run.session_id, line)
            return
        session.receive_run(run)
        self._sessions.touch(session)

    def _receive_line(self, link: AgentLink, line: bytes) -> bool:
        """Handle one line. Return whether it is an answer that a task awaits."""
        session_id = session_of_update(line) if UPDATE in line and is_sound(line) else None
        if session_id is None:
            return self._receive(link, line)
        session = self._sessions.by_id.get(session_id)
        if session is None:
            self._sessions.early.put(session_id, line)
        else:
            self._receive_notification(session, line)
        return False

    def _receive_notification(self, session: ServedSession, line: bytes) -> None:
        if session.receive(line):
            self._delivery.sync_soon(session.history)
            self._turn_ended(session)
        if SUBAGENT in line:
            self._sessions.subagents.receive_update(session, line)
        self._sessions.touch(session)

    def _receive(self, link: AgentLink, line: bytes | Oversized) -> bool:
        message = parse(line)
        if isinstance(message, Malformed):
            mended = replace_lone_surrogates(line) if isinstance(line, bytes) else None
            return self._refuse(link, message, line) if mended is None else self._receive_line(link, mended)
        if message.method is None:
            return link.settle(message, bytes(line) if isinstance(line, bytes) else b"")
        if isinstance(line, bytes):
            if message.id is UNSET:
                self._notification(message.method, message, line)
            else:
                self._request(link, message.method, bytes(message.id), message, line)
        return False

    def _refuse(self, link: AgentLink, malformed: Malformed, line: bytes | Oversized) -> bool:
        """Fail the request that a malformed message belongs to, or report that a message was dropped.

        Return whether a task awaits the failed request.
        """
        if isinstance(line, bytes):
            link.record_printed(line.decode(errors="replace"))
        if malformed.id != NULL_ID and malformed.answerable:
            link.write(make_error(malformed.id, malformed.code, malformed.problem))
            return False
        remedy = "" if isinstance(line, bytes) else ": request less at once"
        lost = f"the agent has answered, and its answer was dropped because {malformed.problem}{remedy}"
        has_failed = malformed.id != NULL_ID and link.fail_call(malformed.id, AgentFailure(lost))
        if not has_failed and not isinstance(line, bytes):
            self._announcements.agent_notice(f"a message of the agent was dropped because {malformed.problem}")
        return has_failed

    def _request(self, link: AgentLink, method: str, id_: bytes, message: Message, line: bytes) -> None:
        session = self._sessions.find(session_of(message.params))
        if method == REDIRECT:
            self._logins.name_redirect(id_, [] if session is None else self._questions.askable(session))
            return
        if method == ELICIT:
            self._logins.note(message.params, session)
        # A question without a session may be about a request of one viewer. Only that viewer can answer it.
        viewer: Viewer | None = None
        about = fields_of(message.params).get("requestId") if method == ELICIT and session is None else None
        if about is not None:
            request = link.origin_of(bytes(about))
            if isinstance(request, ViewerRequest):
                line, viewer = rename_request(line, request.id), request.viewer
        self._questions.receive(AgentRequest(id_, method, message.params, line, session=session, only=viewer))

    def _notification(self, method: str, message: Message, line: bytes) -> None:
        if method == methods.CANCEL_REQUEST.name:
            cancelled = fields_of(message.params).get("requestId")
            if cancelled is not None:
                self._questions.cancel(bytes(cancelled))
            return
        session = self._sessions.find(session_of(message.params))
        if session is not None:
            self._receive_notification(session, line)
            return
        if method == MCP_MESSAGE:
            return  # in MCP over ACP only the side that has the server sends notifications
        for viewer in list(self._delivery.viewers.values()):
            # Names and addresses of accounts are only for viewers that may log in.
            is_for_owners = viewer.read_only and method == methods.AUTH_STATUS_UPDATE.name
            if viewer.capabilities is not None and not is_for_owners and not viewer.is_scoped:
                viewer.send(line)
