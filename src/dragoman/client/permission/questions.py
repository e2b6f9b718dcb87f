"""The agent's permission requests and forms: answered by the policy or a callback, and cancelled with the turn."""

import logging
from collections.abc import Awaitable, Callable

from dragoman.client.events import PermissionRequested
from dragoman.client.permission.action import find_action
from dragoman.client.permission.policy import Decision, PermissionQuestion, Policy, choose_option, choose_outcome
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.sessions import Sessions
from dragoman.errors import RpcError
from dragoman.protocol import v1
from dragoman.text import one_line

Inquire = Callable[[v1.CreateElicitationRequest], Awaitable[v1.CreateElicitationResponse]]
"""Asks the user for the values of a form, or to open a page."""

NOTHING_ALLOWS_ONCE = "the agent offers no option to allow it once, and the policy chose no longer-lasting one"

_log = logging.getLogger("dragoman.client")


class AgentQuestions:
    """Answers the permission requests and forms of one agent."""

    def __init__(self, sessions: Sessions, policy: Policy, inquire: Inquire | None = None) -> None:
        self._sessions = sessions
        self._policy = policy
        self._inquire_of = inquire

    async def permission(self, params: v1.RequestPermissionRequest) -> v1.RequestPermissionResponse:
        """Answer `session/request_permission`. Answer `cancelled` only if the turn was cancelled."""
        session = self._sessions.find(params.session_id)
        # A subagent has its own tool calls. Its directories do not count, because the agent chose them, not the user.
        call = (session.find_subagent(params.session_id) or session).apply_call(params.tool_call)
        action = find_action(call, (session.cwd, *session.additional_directories))
        question = PermissionQuestion(params.session_id, call, tuple(params.options), session.cwd, action)
        decision = await self.decide(session, question)
        if decision is None:
            return v1.RequestPermissionResponse(outcome=v1.CancelledPermissionOutcome())
        return v1.RequestPermissionResponse(outcome=choose_outcome(decision, params.options))

    async def decide(self, session: Session, question: PermissionQuestion) -> Decision | None:
        """Return the policy's decision, or None if the turn is cancelled. A policy that fails denies."""
        decision = await session.unless_cancelled(self._judge(question))
        if decision is not None and _lacks_option(decision, question):
            _log.warning("%s was denied: %s", one_line(question.tool_call.title), NOTHING_ALLOWS_ONCE)
            decision = Decision("deny", reason=NOTHING_ALLOWS_ONCE)
        session.add_event(PermissionRequested(question, decision))
        return decision

    async def elicitation(self, params: v1.CreateElicitationRequest) -> v1.CreateElicitationResponse:
        """Answer `elicitation/create`, with `cancel` if the turn is cancelled."""
        match params:
            case (
                v1.FormElicitationForSession(session_id=session_id) | v1.UrlElicitationForSession(session_id=session_id)
            ):
                session = self._sessions.find(session_id)
                return await session.unless_cancelled(self._inquire(params)) or v1.ElicitationCancelAction()
            case _:
                return await self._inquire(params)

    async def _judge(self, question: PermissionQuestion) -> Decision:
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


def _lacks_option(decision: Decision, question: PermissionQuestion) -> bool:
    has_options = bool(question.options)
    return has_options and decision.verdict == "allow" and choose_option(decision, question.options) is None
