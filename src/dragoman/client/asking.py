"""Questions of the agent: answered by the policy or the callback, and dropped when the turn is cancelled."""

import logging
from collections.abc import Awaitable, Callable

from dragoman.client.events import Asked
from dragoman.client.policy import Decision, Policy, Question, choose_option, choose_outcome, find_action
from dragoman.client.session import Session
from dragoman.client.sessions import Sessions
from dragoman.errors import RpcError
from dragoman.protocol import v1
from dragoman.text import one_line
from dragoman.wire import IncomingRequest

Inquire = Callable[[v1.CreateElicitationRequest], Awaitable[v1.CreateElicitationResponse]]
"""Asks a person for the values of an elicitation."""

NOTHING_ALLOWS_ONCE = "the agent offers no option that allows it once, and one that binds for longer was not named"

_log = logging.getLogger("dragoman.client")


class Asking:
    """Answers the questions of one agent."""

    def __init__(self, sessions: Sessions, policy: Policy, inquire: Inquire | None = None) -> None:
        self._sessions = sessions
        self._policy = policy
        self._inquire_of = inquire

    async def permission(
        self, params: v1.RequestPermissionRequest, request: IncomingRequest
    ) -> v1.RequestPermissionResponse:
        """Answer `session/request_permission`: `cancelled` for cancelled turns, and for nothing else."""
        del request
        session = self._sessions.find(params.session_id)
        # A subagent's calls are its own; its directories count for nothing, because the agent alone has chosen them.
        call = (session.find_subagent(params.session_id) or session).note_call(params.tool_call)
        action = find_action(call, (session.cwd, *session.additional_directories))
        question = Question(params.session_id, call, tuple(params.options), session.cwd, action)
        decision = await self.decide(session, question)
        if decision is None:
            return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
        return v1.RequestPermissionResponse(outcome=choose_outcome(decision, params.options))

    async def decide(self, session: Session, question: Question) -> Decision | None:
        """Let the policy decide; None when the turn is cancelled. A policy that fails has allowed nothing."""
        decision = await session.unless_cancelled(self._judge(question))
        if decision is not None and _cannot_be_given(decision, question):
            _log.warning("%s was denied: %s", one_line(question.tool_call.title), NOTHING_ALLOWS_ONCE)
            decision = Decision("deny", reason=NOTHING_ALLOWS_ONCE)
        session.tell(Asked(question, decision))
        return decision

    async def elicitation(
        self, params: v1.CreateElicitationRequest, request: IncomingRequest
    ) -> v1.CreateElicitationResponse:
        """Answer `elicitation/create`: `cancel` when the turn is cancelled."""
        del request
        match params:
            case (
                v1.FormElicitationForSession(session_id=session_id) | v1.UrlElicitationForSession(session_id=session_id)
            ):
                session = self._sessions.find(session_id)
                return await session.unless_cancelled(self._inquire(params)) or v1.ElicitationCancelAction()
            case _:
                return await self._inquire(params)

    async def _judge(self, question: Question) -> Decision:
        try:
            return await self._policy.decide(question)
        except Exception:  # noqa: BLE001 -- boundary: user callback
            _log.exception("the policy failed, so %s was denied", one_line(question.tool_call.title))
            return Decision("deny", reason="the policy failed")

    async def _inquire(self, params: v1.CreateElicitationRequest) -> v1.CreateElicitationResponse:
        if self._inquire_of is None:
            return v1.ElicitationDeclineAction()
        try:
            return await self._inquire_of(params)
        except RpcError:
            raise
        except Exception:  # noqa: BLE001 -- boundary: user callback
            _log.exception("the callback for elicitation failed, so it was declined")
            return v1.ElicitationDeclineAction()


def _cannot_be_given(decision: Decision, question: Question) -> bool:
    asked = bool(question.options)
    return asked and decision.verdict == "allow" and choose_option(decision, question.options) is None
