"""Decides whether a prepared call may run: by the mode, by an earlier decision, or by asking the user.

A request without an answer, because of a timeout or a lost client, is a denial. So is an answer without a meaning. The
model receives the denial, and the turn continues.

A request has at most one option of each kind, because clients treat two options of a kind as the same. The name of
"always allow" states its scope and duration. `protocol/permission_options.py` describes how a client chooses
another scope. "Always reject" applies to the project. "Always allow" is missing if the call could do more than the
request shows.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from dragoman.agent.sessions.approvals import Approvals
from dragoman.agent.sessions.settings import Mode
from dragoman.agent.turns.prepared_call import IN_SANDBOX, Action, ProposedCall
from dragoman.errors import ConnectionClosedError, InvalidResultError, RemoteError
from dragoman.files.path import show_from
from dragoman.protocol import v1
from dragoman.protocol.permission_options import REMEMBER_KEY, RememberScope, write_scopes
from dragoman.text import visible
from dragoman.text.excerpt import shorten_middle

Scope = Literal["session", "project"]
"""How long an "always" applies: to this session, or to all sessions of the project."""


_MAX_NAMED = 2
_MAX_NAME_CHARS = 60
"""The characters of a file name in the name of an option. The request itself shows all names in full."""

_READING = {"list_directory": "listing", "search_files": "searching"}
_WRITING = {"delete": "deleting", "move": "moving"}

Judgement = Literal["run", "ask", "refuse"]
AskUser = Callable[[v1.ToolCallUpdate, list[v1.PermissionOption]], Awaitable[v1.RequestPermissionResponse]]


class PermissionDecision(msgspec.Struct, frozen=True):
    """Whether a call may run, and if not, the reason for the model."""

    allowed: bool
    reason: str = ""
    asked: bool = False
    option_id: str | None = None
    remembered: Scope | None = None
    """How long the decision applies, if it covers more than this call."""


class Permission:
    """Decides for one session. `mode` is called each time, because the mode can change during a turn."""

    def __init__(
        self,
        mode: Callable[[], Mode],
        approvals: Approvals,
        ask: AskUser,
        *,
        timeout_s: float | None = None,
        remember: Scope = "session",
        cwd: str = "/",
    ) -> None:
        self._mode = mode
        self._approvals = approvals
        self._ask = ask
        self._cwd = cwd
        self.timeout_s = timeout_s
        """How long the user may take to answer."""
        self.remember: Scope = remember
        """How long an "always" applies by default."""

    async def decide(self, call_id: str, call: ProposedCall, raw_input: Any) -> PermissionDecision:
        """Decide on a call. Ask the user if neither the mode nor an earlier decision applies."""
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
                answer = await self._ask(request, self._options(call))
        except TimeoutError:
            return PermissionDecision(allowed=False, reason="no answer came in time, so it was denied", asked=True)
        except (ConnectionClosedError, RemoteError, InvalidResultError):
            return PermissionDecision(allowed=False, reason="the user could not be asked, so it was denied", asked=True)
        return await self._apply_answer(call, answer)

    async def _judge(self, call: ProposedCall) -> tuple[Judgement, str]:
        # Calls that need no permission run at once. Then refusals are checked, then approvals, then the mode.
        if call.action is None or (call.reads_only and call.inside and call.verdict is None):
            return "run", ""
        decided = await self._find_decision(call.action)
        if decided == "allow" and not call.can_be_kept:
            decided = None  # approved when the check was less strict
        mode = self._mode()
        refusal = _refusal(call, call.action, mode, decided, self._cwd)
        if refusal:
            return "refuse", refusal
        level = mode.permission
        if decided == "allow" or call.verdict == "allow" or (level == "all" and call.verdict is None):
            return "run", ""
        runs_with_edits = call.in_sandbox or (call.action.kind == "write" and call.inside)
        if level == "edits" and runs_with_edits and not call.always_asks:
            return "run", ""
        return "ask", ""

    async def _find_decision(self, action: Action) -> Literal["allow", "reject"] | None:
        """Return the decision about an action. One about a command outside the sandbox also applies inside."""
        decided = await self._approvals.find(action)
        if decided is None and action.where.startswith(IN_SANDBOX):
            outside = msgspec.structs.replace(action, where=action.where.removeprefix(IN_SANDBOX))
            return await self._approvals.find(outside)
        return decided

    async def _apply_answer(self, call: ProposedCall, answer: v1.RequestPermissionResponse) -> PermissionDecision:
        outcome = answer.outcome
        if not isinstance(outcome, v1.SelectedPermissionOutcome):
            return PermissionDecision(allowed=False, reason="the request was dismissed, so it was denied", asked=True)
        option = outcome.option_id
        if option != "allow_once" and not (option == "allow_always" and call.can_be_kept):
            remembered = await self._keep(call, "reject", "project") if option == "reject_always" else None
            return PermissionDecision(
                allowed=False, reason="permission was denied", asked=True, option_id=option, remembered=remembered
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
            await self._approvals.keep_for_project(call.action, verdict)
        return scope

    def _options(self, call: ProposedCall) -> list[v1.PermissionOption]:
        """Return the options, at most one of each kind."""
        what, rest = ("this", "") if call.action is None else describe_grant(call.action, self._cwd)
        scopes = [
            RememberScope("session", f"Allow {what} in this session{rest}"),
            RememberScope("project", f"Always allow {what} in this project{rest}"),
        ]
        scopes.sort(key=lambda each: each.scope != self.remember)
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


def describe_grant(action: Action, cwd: str) -> tuple[str, str]:
    """Return the text for the scope of an "always" for this action, and a remark for the end of the sentence.

    Only a command is covered exactly as shown. An edit is covered by its path, so later edits of the same file may
    differ. A tool is covered by its name and its server, so its input may differ.
    """
    if action.kind == "command":
        return f"exactly this command{' in the sandbox' * action.where.startswith(IN_SANDBOX)}", ""
    if action.kind == "tool":
        return "this tool", ", whatever the input"
    if action.kind == "read":
        return f"{_READING.get(action.where, 'reading')} {_list_paths(action.what, cwd)}", ""
    return f"{_WRITING.get(action.where, 'edits to')} {_list_paths(action.what, cwd)}", ""


def _list_paths(paths: str, cwd: str) -> str:
    names = [_show_name(show_from(cwd, path)) for path in paths.split("\0")]
    if len(names) > _MAX_NAMED + 1:
        return f"{', '.join(names[:_MAX_NAMED])} and {len(names) - _MAX_NAMED} more files"
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _show_name(name: str) -> str:
    """Return a path for the name of an option, quoted if it could be mistaken for words of the sentence."""
    shown = shorten_middle(visible(name), _MAX_NAME_CHARS)
    return shown if shown == name and " " not in shown else f"“{shown}”"


def _chosen_scope(outcome: v1.SelectedPermissionOutcome) -> Scope | None:
    scope = (outcome.meta or {}).get(REMEMBER_KEY)
    return scope if scope in ("session", "project") else None


def _refusal(call: ProposedCall, action: Action, mode: Mode, decided: str | None, cwd: str) -> str:
    if call.verdict == "deny":
        return "the agent's settings do not allow it; do not try again"
    if decided == "reject":
        what, rest = describe_grant(action, cwd)
        return f"the user has permanently rejected {what}{rest}; do not try again"
    if mode.permission == "reads" and action.kind != "read" and not call.reads_only:
        return f"the session is in {mode.id} mode, which allows no changes; describe what you would do instead"
    return ""
