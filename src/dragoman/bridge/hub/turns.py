"""Prompts: shown to everybody on the session, passed to the agent, and their end recorded."""

from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import fields_of, parse_list, string_of
from dragoman.bridge.hub.request import Request
from dragoman.bridge.hub.session import Session
from dragoman.bridge.supervisor import AgentFailure
from dragoman.errors import ErrorCode, RpcError
from dragoman.wire import Message, error_object

if TYPE_CHECKING:
    from dragoman.bridge.hub.desk import Desk
    from dragoman.bridge.hub.hub import Hub


class Turns:
    """Follows the turns of all sessions."""

    def __init__(self, hub: "Hub", desk: "Desk") -> None:
        self._hub = hub
        self._desk = desk
        self._prompts = 0

    def prompt(self, request: Request) -> None:
        """Pass a prompt on."""
        session = self._hub.sessions.get(request.session_id or "")
        if session is None:
            self._desk.forward(request)
            return
        viewer = request.viewer
        if viewer not in session.attachments:
            session.attach(viewer, session.journal.next_end)
            self._hub.asks.attached(session, viewer)
        if not session.journal.recover():
            problem = f"the conversation cannot be written down: there is no space for {session.journal.path}"
            request.refuse(ErrorCode.INTERNAL_ERROR, f"{problem}; free some space on that disk, then send this again")
            return
        if not session.turns:
            viewer.note_step(session.id)
        self._prompts += 1
        session.attachments[viewer].last_active = self._prompts
        self._desk.with_session(request, session, lambda: self._begin(request, session))

    def cancel(self, session: Session) -> None:
        """Answer prompts that the agent has not seen yet."""
        waiting = [parked for parked in session.parked if parked.request.method == "session/prompt"]
        session.parked = [parked for parked in session.parked if parked not in waiting]
        for parked in waiting:
            parked.request.answer({"stopReason": "cancelled"})
        if waiting:
            self._hub.changed(session)

    def _begin(self, request: Request, session: Session) -> None:
        session.begin_turn(request.viewer, parse_list(fields_of(request.params).get("prompt")))
        self._hub.touch(session)

        def answered(message: Message, line: bytes) -> None:
            self._end(session, message)
            request.pass_on(line)

        def failed(failure: AgentFailure) -> None:
            session.end_turn(None, error_object(RpcError(ErrorCode.INTERNAL_ERROR, failure.data())))
            self._hub.touch(session)
            request.fail(failure)

        self._desk.forward(request, session=session, then=answered, failed=failed)

    def _end(self, session: Session, message: Message) -> None:
        if message.error is not UNSET:
            session.end_turn(None, Raw(bytes(message.error)))
        else:
            session.end_turn(string_of(fields_of(message.result).get("stopReason")))
        self._hub.touch(session)
        self._hub.syncer.want(session.journal)
