"""Requests about the work of a session: prompts, queued prompts, steering, close and delete.

A turn of an agent of version 1 lasts until the answer to its prompt. Such a turn runs in `_run_turn`, from the prompt
to the record of its end. An agent of version 2 answers a prompt at once, and its state updates report the end.
"""

import uuid
from collections.abc import Callable

from msgspec import UNSET, Raw

from dragoman.bridge.agent_host import AgentHost
from dragoman.bridge.agent_link import AgentLink, NoAnswerError
from dragoman.bridge.envelope import is_given, parse_list
from dragoman.bridge.router.reply import Reply, ServeRequest
from dragoman.bridge.sessions import ServedSession, ServedSessions
from dragoman.bridge.sessions.prompt_queue import pop_queue_mark
from dragoman.bridge.translation import V1, V2
from dragoman.bridge.viewers import Delivery, ViewerRequest
from dragoman.errors import ErrorCode, RpcError
from dragoman.protocol.message_name import MESSAGE_KEY
from dragoman.protocol.turn_usage import usage_from_meta
from dragoman.wire import error_object
from dragoman.wire.envelope import encode, fields_of, string_of, with_param

STEER = "_session/steering"
"""An extension that several agents share: sends a message into the running turn."""

_ACCEPTED = ("injected", "startedNewTurn")
"""Outcomes of steering after which the message is part of the conversation."""


class SessionRequests:
    """Serves requests about the work of a session."""

    def __init__(
        self,
        *,
        delivery: Delivery,
        host: AgentHost,
        sessions: ServedSessions,
        serve: Callable[[ViewerRequest, ServeRequest], None],
    ) -> None:
        """`serve` starts to serve a postponed request, and answers it."""
        self._delivery = delivery
        self._host = host
        self._sessions = sessions
        self._serve = serve

    async def prompt(self, request: ViewerRequest) -> Reply:
        """Run a prompt, or queue it behind the running turn. All viewers of the session see it."""
        session = self._sessions.find(request.session_id)
        if session is None:
            return await self._sessions.pass_on(request)
        viewer = request.viewer
        mark = pop_queue_mark(request) if viewer.knows_extensions else None
        if viewer not in session.subscriptions:
            session.subscribe(viewer, session.history.next_end)
            self._sessions.questions.viewer_joined(session, viewer)
        self._sessions.questions.record_activity(viewer, session.id)
        if session.turns.repeated.answer_repeated(request):
            return None
        if not session.history.recover():
            problem = f"the conversation cannot be saved: no space left for {session.history.place}"
            raise RpcError(ErrorCode.INTERNAL_ERROR, f"{problem}; free some space on that disk and send this again")
        if mark is not None and self._must_wait(session):
            session.turns.queue.add(mark, request)
            session.announce_queue()
            return None
        return await self._begin_turn(request, session)

    async def steer(self, request: ViewerRequest) -> Reply:
        """Send a message into the running turn, and journal it once the agent has accepted it."""
        session = self._sessions.find(request.session_id)
        message = parse_list(fields_of(request.params).get("prompt"))
        if session is not None and session.info.turns:
            session.turns.expect_echo(message)
        answer = await self._sessions.pass_on(request, session)
        if session is not None and string_of(answer.result.get("outcome")) in _ACCEPTED:
            session.add_message(message)
            session.changed()
        return answer

    async def change_queued(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/queue/change`: change the text of a queued prompt, or remove it."""
        session = self._sessions.find(request.session_id)
        fields = fields_of(request.params)
        queued = None if session is None else session.turns.queue.find(string_of(fields.get("id")))
        if session is None or queued is None:
            problem = "no such message is queued; it was already sent or removed"
            raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, {"problem": problem})
        text = string_of(fields.get("text"))
        if text is None:
            session.turns.queue.remove(queued)
        else:
            queued.change(text)
        session.announce_queue()
        return {}

    async def resume_queue(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/queue/resume`: send the prompts that were held after a failed turn."""
        session = self._sessions.find(request.session_id)
        if session is not None:
            session.turns.queue.is_held = False
            session.announce_queue()
            self.begin_next(session)
        return {}

    def begin_next(self, session: ServedSession) -> None:
        """Start the next prompt that waited for the end of a turn."""
        if session.info.turns:
            return
        if session.turns.held:
            request = session.turns.held.pop(0)
        elif (request := session.turns.queue.pop()) is not None:
            session.announce_queue()
        if request is not None:
            self._serve(request, lambda each: self._begin_turn(each, session))

    async def delete(self, request: ViewerRequest) -> Reply:
        """Delete a session at the agent, then its journal. Succeed if the agent has already forgotten the session."""
        session_id = request.session_id or ""
        answer = await self._sessions.pass_on(request)
        is_forgotten = answer.error is not None and answer.error.code == ErrorCode.RESOURCE_NOT_FOUND
        if is_forgotten and self._sessions.knows(session_id):
            request.answer({})
        else:
            request.pass_on(answer.line)
        if is_forgotten or not answer.is_error:
            self._sessions.delete(session_id)  # after the answer, which is sent with the session's messages
        return None

    async def close(self, request: ViewerRequest) -> Reply:
        """Close a session at the agent, until a viewer opens it again."""
        session = self._sessions.find(request.session_id)
        answer = await self._sessions.pass_on(request)
        request.pass_on(answer.line)
        if session is not None and not answer.is_error:
            session.closed(request.viewer)
        return None

    async def _begin_turn(self, request: ViewerRequest, session: ServedSession) -> Reply:
        """Send a prompt to the agent as soon as the agent has the session."""
        try:
            link = await session.at_agent(request)
        except NoAnswerError:
            if session.turns.held:
                self.begin_next(session)  # no turn will end that could start the next prompt
            raise
        if self._host.version == V2:
            return await self._pass_prompt(request, session, link)
        if request.viewer.version == V2 and session.info.turns:
            session.turns.hold(request)
            return None
        return await self._run_turn(request, session, link)

    async def _run_turn(self, request: ViewerRequest, session: ServedSession, link: AgentLink) -> Reply:
        """Run a turn of an agent of version 1. It lasts until the agent answers the prompt."""
        message_id = str(uuid.uuid4()) if request.viewer.version == V2 else None
        name = self._name_message(request, message_id)
        # Send the prompt first, so that the agent works while the prompt is journalled.
        call = request.send_to(link)
        session.begin_turn(
            request.viewer, parse_list(fields_of(request.params).get("prompt")), name, request.repeatable
        )
        if message_id is not None:
            session.turns.insert(request, message_id)
        try:
            message, line = await call
        except NoAnswerError as gone:
            session.turns.refuse_insertion(request)
            error = error_object(RpcError(ErrorCode.INTERNAL_ERROR, gone.failure.data()))
            session.show_end(None, error)
            session.end_turn(None, error)
            request.fail(gone.failure.data())
            self.begin_next(session)
            return None
        was_inserted = message_id is None or message.error is UNSET or request.is_over
        answer = fields_of(message.result)
        stop_reason = string_of(answer.get("stopReason"))
        refusal = None if message.error is UNSET else Raw(bytes(message.error))
        session.turns.refuse_insertion(request)
        session.show_end(stop_reason, refusal, _find_usage(answer))
        if message_id is None or not was_inserted:
            request.pass_on(line)  # after all updates, but before the record of the turn's end
        else:
            request.answer({"messageId": message_id})
        session.end_turn(stop_reason, refusal, was_inserted=was_inserted)
        self._delivery.sync_soon(session.history)
        self.begin_next(session)
        return None

    async def _pass_prompt(self, request: ViewerRequest, session: ServedSession, link: AgentLink) -> Reply:
        """Send a prompt to an agent of version 2. A later state update reports the end of the work."""
        is_v1 = request.viewer.version == V1
        call = request.send_to(link)
        if request.repeatable is not None:
            session.journal_prompt(request.repeatable)
        if is_v1:
            session.turns.send(call.id, request)
        answer = await call
        if not answer.is_error:
            session.info.prompted = True
            session.propose_title(parse_list(fields_of(request.params).get("prompt")))
        if not is_v1:
            return answer
        session.turns.answered(call.id, answer.line)  # the viewer is answered at the end of the work
        return None

    def _name_message(self, request: ViewerRequest, message_id: str | None) -> str | None:
        """Name the prompt's message in its `_meta` if the agent supports that. Return the id for the journal."""
        if not self._host.support.message_names:
            return message_id
        name = message_id or str(uuid.uuid4())
        meta = fields_of(fields_of(request.params).get("_meta", UNSET))
        request.line = with_param(request.line, "_meta", {**meta, MESSAGE_KEY: name})
        return name

    def _must_wait(self, session: ServedSession) -> bool:
        return session.state == "running" or (bool(session.turns.queue) and not session.turns.queue.is_held)


def _find_usage(answer: dict[str, Raw]) -> Raw | None:
    """Return the token usage in the answer to a prompt, or in its `_meta`."""
    usage = answer.get("usage")
    if is_given(usage):
        return usage
    meta = answer.get("_meta")
    found = None if meta is None else usage_from_meta(meta)
    return None if found is None else Raw(encode(found))
