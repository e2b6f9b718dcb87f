"""Whether a prepared call may run: by the mode, by an earlier decision, or by asking the person.

A question without an answer, because the time of the agent for it is over or the client is gone, and an answer without
meaning are denials. A denial is told to the model, and the turn goes on.

There is one option of each kind, because clients take two of a kind for the same one. The name of "always allow" says
how long it holds; `protocol/permission_options.py` says how a client may choose another scope. "Always reject" holds
in the project. "Always allow" is missing where it cannot be bound to exactly the call that was shown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from dragoman.agent.approvals import Approvals
from dragoman.agent.prepared_call import Action, ProposedCall
from dragoman.agent.settings import Mode
from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.permission_options import REMEMBER_KEY, RememberScope, write_scopes

Scope = Literal["session", "project"]
"""How long an "always" of the person holds: in this session, or in all sessions of the project."""


Judgement = Literal["run", "ask", "refuse"]
AskPerson = Callable[[v1.ToolCallUpdate, list[v1.PermissionOption]], Awaitable[v1.RequestPermissionResponse]]


class PermissionDecision(msgspec.Struct, frozen=True):
    """Whether a call may run; if not, why, in words for the model."""

    allowed: bool
    reason: str = ""
    asked: bool = False
    option_id: str | None = None
    remembered: Scope | None = None
    """How long the decision holds, if it does for more than this call."""


class Permission:
    """Decides in one session; `mode` is called each time, because it can change in the middle of a turn."""

    def __init__(
        self,
        mode: Callable[[], Mode],
        approvals: Approvals,
        ask: AskPerson,
        *,
        timeout_s: float | None = None,
        remember: Scope = "session",
    ) -> None:
        self._mode = mode
        self._approvals = approvals
        self._ask = ask
        self.timeout_s = timeout_s
        """How long a person may take to answer."""
        self.remember: Scope = remember
        """How long an "always" holds by default."""

    async def decide(self, call_id: str, call: ProposedCall, raw_input: Any) -> PermissionDecision:
        """Decide on a call, asking the person where that is theirs to say."""
        judgement, reason = await self._judge(call)
        if judgement != "ask":
            return PermissionDecision(judgement == "run", reason)
        request = v1.ToolCallUpdate(
            tool_call_id=call_id,
            title=call.title,
            kind=call.kind,
            status="pending",
            content=list(call.content),
            locations=list(call.locations),
            raw_input=raw_input,
        )
        try:
            async with asyncio.timeout(self.timeout_s):
                answer = await self._ask(request, _options(call, self.remember))
        except TimeoutError:
            return PermissionDecision(
                allowed=False, reason="nobody answered in time, so it was not allowed", asked=True
            )
        except (ConnectionClosed, RemoteError, InvalidResult):
            return PermissionDecision(
                allowed=False, reason="the person could not be asked, so it was not allowed", asked=True
            )
        return await self._take(call, answer)

    async def _judge(self, call: ProposedCall) -> tuple[Judgement, str]:
        if call.action is None or (call.reads_only and call.inside and call.verdict is None):
            return "run", ""
        decided = await self._approvals.find(call.action)
        if decided == "allow" and not call.can_be_kept:
            decided = None  # it was approved when less was looked at
        mode = self._mode()
        refusal = _refusal(call, call.action, mode, decided)
        if refusal:
            return "refuse", refusal
        level = mode.permission
        if decided == "allow" or call.verdict == "allow" or (level == "all" and call.verdict is None):
            return "run", ""
        if level == "edits" and call.action.kind == "write" and call.inside and not call.always_asks:
            return "run", ""
        return "ask", ""

    async def _take(self, call: ProposedCall, answer: v1.RequestPermissionResponse) -> PermissionDecision:
        outcome = answer.outcome
        if not isinstance(outcome, v1.SelectedPermissionOutcome):
            return PermissionDecision(
                allowed=False, reason="the question was dismissed, so it was not allowed", asked=True
            )
        option = outcome.option_id
        if option != "allow_once" and not (option == "allow_always" and call.can_be_kept):
            remembered = await self._keep(call, "reject", "project") if option == "reject_always" else None
            return PermissionDecision(
                allowed=False, reason="the person declined", asked=True, option_id=option, remembered=remembered
            )
        remembered = None
        if option == "allow_always":
            remembered = await self._keep(call, "allow", _chosen_scope(outcome) or self.remember)
        return PermissionDecision(allowed=True, asked=True, option_id=option, remembered=remembered)

    async def _keep(self, call: ProposedCall, verdict: Literal["allow", "reject"], scope: Scope) -> Scope | None:
        if call.action is None:
            return None
        if scope == "session":
            self._approvals.keep_for_session(call.action, verdict)
        else:
            await self._approvals.keep_for_good(call.action, verdict)
        return scope


def _options(call: ProposedCall, remember: Scope) -> list[v1.PermissionOption]:
    """Return at most one option of each kind; of foreign tools only the name and the server are remembered."""
    what, rest = ("this tool", ", whatever the input") if _is_foreign(call) else ("exactly this", "")
    scopes = [
        RememberScope("session", f"Allow {what} in this session{rest}"),
        RememberScope("project", f"Always allow {what} in this project{rest}"),
    ]
    scopes.sort(key=lambda each: each.scope != remember)
    reject = f"Always reject {what} in this project{rest}"
    always = v1.PermissionOption(
        option_id="allow_always", name=scopes[0].name, kind="allow_always", meta=write_scopes(scopes)
    )
    return [
        v1.PermissionOption(option_id="allow_once", name="Allow", kind="allow_once"),
        *([always] if call.can_be_kept else []),
        v1.PermissionOption(option_id="reject_once", name="Reject", kind="reject_once"),
        v1.PermissionOption(option_id="reject_always", name=reject, kind="reject_always"),
    ]


def _chosen_scope(outcome: v1.SelectedPermissionOutcome) -> Scope | None:
    scope = (outcome.meta or {}).get(REMEMBER_KEY)
    return scope if scope in ("session", "project") else None


def _is_foreign(call: ProposedCall) -> bool:
    return call.action is not None and call.action.kind == "tool"


def _refusal(call: ProposedCall, action: Action, mode: Mode, decided: str | None) -> str:
    if call.verdict == "deny":
        return "the agent's settings do not allow it; do not try it again"
    if decided == "reject":
        return "the person has rejected exactly this for good; do not try it again"
    if mode.permission == "reads" and action.kind != "read" and not call.reads_only:
        return f"the session is in {mode.id} mode, which changes nothing; say what you would do instead"
    return ""
