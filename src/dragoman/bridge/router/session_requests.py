"""Requests about the work of a session: prompts, those that wait, messages into a turn, close and delete."""

import uuid

from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Delivery, ViewerRequest
from dragoman.bridge.envelope import fields_of, parse_list, string_of, with_param
from dragoman.bridge.registry import LifeEvent, ServedSession, SessionRegistry, SessionRestorer
from dragoman.bridge.registry.prompt_queue import take_mark
from dragoman.bridge.router.questions import Questions
from dragoman.bridge.supervisor import AgentFailure, AgentSupervisor
from dragoman.bridge.translation import V1, V2
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.wire import Message, error_object
from dragoman.wire.message import parse_error

STEER = "_session/steering"
"""An extension that several agents share: a message for the turn that is under way."""

_TAKEN = ("injected", "startedNewTurn")
"""Outcomes of steering after which the message is part of the conversation."""


class SessionRequests:
    """Serves requests that are about the work of a session."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        supervisor: AgentSupervisor,
        registry: SessionRegistry,
        restorer: SessionRestorer,
        questions: Questions,
    ) -> None:
        self._delivery = delivery
        self._supervisor = supervisor
        self._registry = registry
        self._restorer = restorer
        self._questions = questions

    def prompt(self, request: ViewerRequest) -> None:
        """Show a prompt to all viewers of its session, pass it to the agent, and journal its end."""
        session = self._registry.find(request.session_id)
        if session is None:
            self._restorer.forward(request)
            return
        viewer = request.viewer
        mark = take_mark(request) if viewer.knows_extensions else None
        if viewer not in session.subscriptions:
            session.subscribe(viewer, session.journal.next_end)
            self._questions.viewer_joined(session, viewer)
        self._questions.note_activity(viewer, session.id)
        if session.turns.repeated.take(request):
            return
        if not session.journal.recover():
            problem = f"the conversation cannot be written down: there is no space for {session.journal.place}"
            request.refuse(ErrorCode.INTERNAL_ERROR, f"{problem}; free some space on that disk, then send this again")
            return
        if mark is not None and self._must_wait(session):
            if session.turns.queue.add(mark, request):
                session.tell_queue()
            return
        if not session.info.turns:
            viewer.outbox.note_step(session.id)
        self._restorer.when_live(request, session, lambda: self._begin_turn(request, session))

    def steer(self, request: ViewerRequest) -> None:
        """Pass a message into the turn under way, and journal it once the agent has taken it."""
        session = self._registry.find(request.session_id)

        def answered(message: Message, line: bytes) -> None:
            outcome = string_of(fields_of(message.result).get("outcome"))
            if session is not None and outcome in _TAKEN:
                session.add_message(parse_list(fields_of(request.params).get("prompt")))
                session.changed()
            request.pass_on(line)

        self._restorer.forward(request, session=session, answered=answered)

    def change_queued(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/queue/change`: give a prompt that waits another text, or take it out."""
        session = self._registry.find(request.session_id)
        fields = fields_of(request.params)
        queued = None if session is None else session.turns.queue.find(string_of(fields.get("id")))
        if session is None or queued is None:
            problem = "no such message waits; it was sent or removed meanwhile"
            request.refuse(ErrorCode.RESOURCE_NOT_FOUND, {"problem": problem})
            return
        text = string_of(fields.get("text"))
        if text is None:
            session.turns.queue.remove(queued)
        else:
            queued.change(text)
        session.tell_queue()
        request.answer({})

    def resume_queue(self, request: ViewerRequest) -> None:
        """Answer `_dragoman/queue/resume`: send the prompts that wait after a turn that ended badly."""
        session = self._registry.find(request.session_id)
        if session is not None:
            session.turns.queue.is_held = False
            session.tell_queue()
            self.begin_next(session)
        request.answer({})

    def begin_next(self, session: ServedSession) -> None:
        """Begin with the next prompt that waited for the end of a turn."""
        if session.info.turns:
            return
        if session.turns.held:
            request = session.turns.held.popleft()
            self._restorer.when_live(request, session, lambda: self._begin_turn(request, session))
        elif (queued := session.turns.queue.take()) is not None:
            session.tell_queue()
            self._restorer.when_live(queued, session, lambda: self._begin_turn(queued, session))

    def delete(self, request: ViewerRequest) -> None:
        """Have the agent delete a session, and then delete its journal: also that of one which the agent forgot."""
        session_id = request.session_id or ""

        def answered(message: Message, line: bytes) -> None:
            error = None if message.error is UNSET else parse_error(message.error)
            is_forgotten = error is not None and error.code == ErrorCode.RESOURCE_NOT_FOUND
            if is_forgotten and self._registry.knows(session_id):
                request.answer({})
            else:
                request.pass_on(line)
            if error is None or is_forgotten:
                self._registry.delete(session_id)

        self._restorer.forward(request, answered=answered)

    def close(self, request: ViewerRequest) -> None:
        """Have the agent close a session, until a viewer opens it again."""
        session = self._registry.find(request.session_id)
        request.viewer.outbox.note_step(request.session_id or "")

        def answered(message: Message, line: bytes) -> None:
            request.pass_on(line)
            if message.error is UNSET and session is not None:
                session.life.take(LifeEvent.CLOSE)
                session.close_turns()
                self._questions.forget_session(session)
                session.changed()

        self._restorer.forward(request, answered=answered)

    def _begin_turn(self, request: ViewerRequest, session: ServedSession) -> None:
        if self._supervisor.version == V2:
            self._pass_prompt(request, session)
        elif request.viewer.version == V2 and session.info.turns:
            session.turns.hold(request)
        else:
            self._begin_v1_turn(request, session)

    def _begin_v1_turn(self, request: ViewerRequest, session: ServedSession) -> None:
        """Have an agent of version 1 take a prompt, which lasts until its answer."""
        has_begun = False
        key = None if request.repeatable is None else request.repeatable.key
        message_id = str(uuid.uuid4()) if request.viewer.version == V2 else None

        def answered(message: Message, line: bytes) -> None:
            was_inserted = message_id is None or message.error is UNSET or request.is_over
            stop_reason = string_of(fields_of(message.result).get("stopReason"))
            error = None if message.error is UNSET else Raw(bytes(message.error))
            session.turns.refuse_insertion(request)
            session.show_end(stop_reason, error, fields_of(message.result).get("usage"))
            if message_id is None or not was_inserted:
                request.pass_on(line)  # behind all updates, and not behind the record of the turn's end
            else:
                request.answer({"messageId": message_id})
            session.end_turn(stop_reason, error, was_inserted=was_inserted, key=key)
            self._delivery.sync_soon(session.journal)
            self.begin_next(session)

        def failed(failure: AgentFailure) -> None:
            session.turns.refuse_insertion(request)
            if has_begun:
                error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, failure.data()))
                session.show_end(None, error)
                session.end_turn(None, error, key=key)
            request.fail(failure.data())
            self.begin_next(session)

        name = self._name_message(request, message_id)
        # First of all, so that the agent is at work while the prompt is journalled.
        self._restorer.forward(request, session=session, answered=answered, failed=failed)
        if not request.is_over:
            has_begun = True
            session.begin_turn(request.viewer, parse_list(fields_of(request.params).get("prompt")), name, key)
            if message_id is not None:
                session.turns.insert(request, message_id)

    def _name_message(self, request: ViewerRequest, message_id: str | None) -> str | None:
        """Have an agent that can know the message of a prompt by the id that it has in the journal."""
        if not self._supervisor.support.message_names:
            return message_id
        name = message_id or str(uuid.uuid4())
        meta = fields_of(fields_of(request.params).get("_meta", UNSET))
        request.line = with_param(request.line, "_meta", {**meta, MESSAGE_KEY: name})
        return name

    def _pass_prompt(self, request: ViewerRequest, session: ServedSession) -> None:
        """Have an agent of version 2 take a prompt; states tell the end of the work on it."""
        is_v1 = request.viewer.version == V1
        agent_id = b""

        def answered(message: Message, line: bytes) -> None:
            if message.error is UNSET:
                session.info.prompted = True
                session.propose_title(parse_list(fields_of(request.params).get("prompt")))
            if is_v1:
                session.turns.answered(agent_id, line)
            else:
                request.pass_on(line)

        def sent(id_: bytes) -> None:
            nonlocal agent_id
            agent_id = id_
            if request.repeatable is not None:
                session.note_prompt(request.repeatable.key)
            if is_v1:
                session.turns.send(id_, request)

        self._restorer.forward(request, session=session, answered=answered, sent=sent)

    def _must_wait(self, session: ServedSession) -> bool:
        return session.state == "running" or (bool(session.turns.queue) and not session.turns.queue.is_held)
