"""Policies, which decide whether an agent may perform an action.

The client asks its policy when the agent requests permission, and before the agent writes a file or runs a command
through the client. The policy decides on the `action`. `action.py` explains how an action is found.
"""

import asyncio
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from dragoman.client.permission.action import (
    OpaqueAction,
    ReadAction,
    RunAction,
    SingleAction,
    ToolAction,
    WriteAction,
    single_actions,
)
from dragoman.client.permission.rule import InvalidRuleError, PolicyRule, Verdict, first_matches, parse_rule
from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.errors import InvalidParamsError
from dragoman.protocol import v1
from dragoman.protocol.permission_options import REMEMBER_KEY, find_default, read_scopes

ASK_TIMEOUT_S = 3600.0
"""Time for the user to answer, who may be away from the keyboard. The bridge waits equally long."""

MAX_GRANTS = 256
"""Actions that the user allowed and the agent has not performed yet. One turn requests fewer."""


class PermissionQuestion(msgspec.Struct, frozen=True):
    """The action that the agent wants to perform, in a session with this `cwd`.

    `options` is empty if the agent asked the client to perform the action, with `fs/*` or `terminal/*`.
    """

    session_id: str
    tool_call: ToolCallState
    options: tuple[v1.PermissionOption, ...]
    cwd: str
    action: ToolAction


class Decision(msgspec.Struct, frozen=True):
    """The answer to a question. `option_id` selects one of the options that allow or deny.

    Without `option_id`, `allow` selects the option that allows once. A longer-lasting option must be named.
    """

    verdict: Literal["allow", "deny"]
    option_id: str | None = None
    reason: str = ""
    remember: str | None = None
    """The scope of a longer-lasting option, if it offers several. Without it, the option's own scope applies."""


@runtime_checkable
class Policy(Protocol):
    """Decides on the actions of an agent."""

    async def decide(self, question: PermissionQuestion) -> Decision:
        """Answer a question. The call is cancelled with the turn."""
        ...


@runtime_checkable
class ReadGuard(Protocol):
    """A policy that can forbid reads through the client. Other policies allow all reads inside the directories."""

    def forbid_read(self, read: ReadAction, cwd: str) -> str:
        """Return why a file must not be read, or an empty text."""
        ...


@runtime_checkable
class ReadGate(Protocol):
    """A policy that can require a decision before each read through the client."""

    @property
    def asks_reads(self) -> bool:
        """Whether each read needs a decision."""
        ...


Answer = Decision | bool
PolicyCallback = Callable[[PermissionQuestion], Answer | Awaitable[Answer]]
"""Asks the user or a service. True allows and False denies."""


def allow_all() -> Policy:
    """Return the policy that allows everything."""
    return _Always(Decision("allow", reason="the policy allows everything"))


def deny_all() -> Policy:
    """Return the policy that allows nothing."""
    return _Always(Decision("deny", reason="the policy denies everything"))


def allow_reads() -> Policy:
    """Return the policy that only allows reads inside the session's directories."""
    return _AllowReads()


def ask_user(callback: PolicyCallback, *, timeout_s: float | None = ASK_TIMEOUT_S, reads: bool = False) -> Policy:
    """Return the policy that calls a function for every decision. The function may be async.

    It is called for each permission request, and before each write and each command through the client. With `reads` it
    is also called before each read through the client. After an allowed permission request, the agent may perform
    exactly that action once through the client without a second call.

    Only True and an allowing `Decision` allow. A function that fails denies, and so does an async one that exceeds
    `timeout_s`. If the turn is cancelled, the function is cancelled and the agent receives `cancelled`.
    """
    return _Ask(callback, timeout_s, asks_reads=reads)


def as_policy(policy: "Policy | PolicyCallback | None") -> Policy:
    """Return a policy unchanged, `ask_user` for a function, and `deny_all` for None."""
    if policy is None:
        return deny_all()
    return policy if isinstance(policy, Policy) else ask_user(policy)


def rules(
    given: Iterable[PolicyRule | str],
    *,
    ask: PolicyCallback | None = None,
    otherwise: Literal["allow", "deny", "ask"] = "deny",
) -> Policy:
    """Return the policy of these rules. The first matching rule decides, or `otherwise` if none matches.

    Raises InvalidRuleError for an invalid rule, and for a rule that asks if `ask` is missing.
    """
    parsed = tuple(rule if isinstance(rule, PolicyRule) else parse_rule(rule) for rule in given)
    ask_rules = [str(rule) for rule in parsed if rule.verdict == "ask"] or (["ask:any"] if otherwise == "ask" else [])
    if ask_rules and ask is None:
        raise InvalidRuleError(
            ask_rules[0], "asks the user, but no function can ask: pass `ask` to `rules`, or use deny"
        )
    return _Rules(parsed, _Ask(ask, ASK_TIMEOUT_S) if ask is not None else None, otherwise)


def choose_option(decision: Decision, options: Sequence[v1.PermissionOption]) -> v1.PermissionOption | None:
    """Return the option that the decision names if it fits, else the default of `permission_options`.

    Options of an unknown kind are never chosen. Return None if no option fits.
    """
    verdict = "allow" if decision.verdict == "allow" else "reject"
    for option in options:
        if option.option_id == decision.option_id and option.kind in (f"{verdict}_once", f"{verdict}_always"):
            return option
    position = find_default([option.kind for option in options], verdict)
    return None if position is None else options[position]


def choose_outcome(decision: Decision, options: Sequence[v1.PermissionOption]) -> v1.SelectedPermissionOutcome:
    """Return the answer to the agent. If no option fits an `allow`, the answer rejects.

    Raises InvalidParamsError if the agent offered no reject option. `cancelled` would be wrong, because it means that
    the turn was cancelled.
    """
    option = choose_option(decision, options)
    if option is not None:
        offered = [each.scope for each in read_scopes(option)]
        meta = {REMEMBER_KEY: decision.remember} if decision.remember in offered else None
        return v1.SelectedPermissionOutcome(option_id=option.option_id, meta=meta)
    if decision.verdict == "allow":
        return choose_outcome(Decision("deny"), options)
    raise InvalidParamsError("params.options", "denied, but the agent offered no reject option", expected="reject_once")


class _Always:
    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def decide(self, question: PermissionQuestion) -> Decision:
        del question
        return self._decision


class _AllowReads:
    async def decide(self, question: PermissionQuestion) -> Decision:
        for action in single_actions(question.action):
            if not isinstance(action, ReadAction):
                return Decision("deny", reason=f"the policy allows only reading, and this is {describe(action)}")
            if action.root is None:
                return Decision("deny", reason=f"{action.path} is outside the session's directories")
        return Decision("allow", reason="it only reads, inside the session's directories")


class _Ask:
    def __init__(self, callback: PolicyCallback, timeout_s: float | None, *, asks_reads: bool = False) -> None:
        self.asks_reads = asks_reads
        self._callback = callback
        self._timeout_s = timeout_s
        self._grants: OrderedDict[bytes, None] = OrderedDict()

    async def decide(self, question: PermissionQuestion) -> Decision:
        # Without options the agent asks the client to act, perhaps after a permission request for the same action.
        if not question.options and self._use_grants(question):
            return Decision("allow", reason="this exact action was allowed when the agent asked")
        answer = self._callback(question)
        if inspect.isawaitable(answer):
            limit = asyncio.timeout(self._timeout_s)
            try:
                async with limit:
                    answer = await answer
            except TimeoutError:
                if not limit.expired():
                    raise
                return Decision("deny", reason=f"no decision came within {self._timeout_s:g} s")
        decision = answer if isinstance(answer, Decision) else Decision("allow" if answer is True else "deny")
        if decision.verdict == "allow" and question.options:
            self._grant(question)
        return decision

    def _grant(self, question: PermissionQuestion) -> None:
        for token in _tokens(question):
            self._grants[token] = None
        while len(self._grants) > MAX_GRANTS:
            self._grants.popitem(last=False)

    def _use_grants(self, question: PermissionQuestion) -> bool:
        tokens = _tokens(question)
        if not tokens or not all(token in self._grants for token in tokens):
            return False
        for token in tokens:
            del self._grants[token]
        return True


class _Rules:
    def __init__(self, rules: tuple[PolicyRule, ...], ask: _Ask | None, otherwise: Verdict) -> None:
        self._rules = rules
        self._ask = ask
        self._otherwise: Verdict = otherwise

    async def decide(self, question: PermissionQuestion) -> Decision:
        found = [
            each
            for action in single_actions(question.action)
            for each in first_matches(self._rules, action, question.tool_call.title, question.cwd)
        ]
        verdict, reason = min((self._judge(*each) for each in found), key=lambda each: _WORST_FIRST.index(each[0]))
        if verdict == "ask" and self._ask is not None:
            return await self._ask.decide(question)
        return Decision("allow" if verdict == "allow" else "deny", reason=reason)

    def forbid_read(self, read: ReadAction, cwd: str) -> str:
        """Return why a rule denies this read, or an empty text if none does."""
        _, rule = first_matches(self._rules, read, "", cwd)[0]
        return f"the rule {rule} denies it" if rule is not None and rule.verdict == "deny" else ""

    def _judge(self, action: SingleAction, rule: PolicyRule | None) -> tuple[Verdict, str]:
        if rule is None:
            return self._otherwise, f"no rule matches {describe(action)}"
        return rule.verdict, f"the rule {rule} matches {describe(action)}"


_WORST_FIRST: tuple[Verdict, ...] = ("deny", "ask", "allow")


def describe(action: SingleAction) -> str:
    """Describe an action in a phrase that continues "this is"."""
    match action:
        case ReadAction(path):
            return f"reading {path}"
        case WriteAction(path):
            return f"writing {path}"
        case RunAction(command):
            return f"running {command!r}"
        case OpaqueAction(title):
            return f"a tool of the agent ({title!r})"


def _tokens(question: PermissionQuestion) -> list[bytes]:
    """Return a digest of each exact action: a command with its directory, or a path with its new text."""
    texts = {item.path: item.new_text for item in question.tool_call.content if isinstance(item, v1.Diff)}
    tokens: list[bytes] = []
    for action in single_actions(question.action):
        match action:
            case RunAction(command, cwd, variables):
                tokens.append(_token(question.session_id, "run", command, cwd or question.cwd, *variables))
            case WriteAction(path):
                text = texts.get(path)
                if text is not None:
                    tokens.append(_token(question.session_id, "write", path, text))
            case _:
                pass
    return tokens


def _token(*parts: str) -> bytes:
    return hashlib.sha256(msgspec.json.encode(parts)).digest()
