"""Policies: each decides whether an agent may do an action, before it is done.

It is asked when the agent asks for permission, and when the agent would write a file or run a command through us. What
it decides on is the `action`: see `action.py` for where that comes from.
"""

import asyncio
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Literal, Protocol, runtime_checkable

import msgspec

from dragoman.client.action import (
    Foreign,
    Read,
    Run,
    Several,
    SingleAction,
    ToolAction,
    Write,
    find_action,
    single_actions,
)
from dragoman.client.rule import BadRule, PolicyRule, Verdict, first_matches, parse_rule
from dragoman.client.tool_call import ToolCallState
from dragoman.errors import InvalidParams
from dragoman.protocol import v1
from dragoman.protocol.permission_options import REMEMBER_KEY, find_default, read_scopes

__all__ = [
    "BadRule",
    "Callback",
    "Decision",
    "Foreign",
    "Policy",
    "PolicyRule",
    "Question",
    "Read",
    "ReadGate",
    "ReadGuard",
    "Run",
    "Several",
    "ToolAction",
    "Write",
    "allow_all",
    "allow_reads",
    "as_policy",
    "ask",
    "choose_option",
    "choose_outcome",
    "deny_all",
    "find_action",
    "parse_rule",
    "rules",
]

ASK_TIMEOUT_S = 3600.0
"""For a person to answer a question, who may be away from the keyboard; as long as the bridge keeps one."""

MAX_GRANTS = 256
"""What a person allowed and the agent has not done yet; more than a turn asks for."""


class Question(msgspec.Struct, frozen=True):
    """The action that the agent wants, in the session whose directory is `cwd`; without options it asks us to do it."""

    session_id: str
    tool_call: ToolCallState
    options: tuple[v1.PermissionOption, ...]
    cwd: str
    action: ToolAction

    @property
    def deed(self) -> ToolAction:
        """The former name of `action`."""
        return self.action


class Decision(msgspec.Struct, frozen=True):
    """The answer: `option_id` is the option that was chosen, if it matters which of those that allow or deny.

    Without it a yes is the option that allows once: one that binds for longer has to be named.
    """

    verdict: Literal["allow", "deny"]
    option_id: str | None = None
    reason: str = ""
    remember: str | None = None
    """The scope of an option that binds for longer, where the option offers several; without it, the one it names."""


@runtime_checkable
class Policy(Protocol):
    """Decides on the actions of an agent."""

    async def decide(self, question: Question) -> Decision:
        """Answer a question; cancelled when the turn is."""
        ...


@runtime_checkable
class ReadGuard(Protocol):
    """A policy that also decides on reads through us; without one, all inside the directories may be read."""

    def forbid_read(self, read: Read, cwd: str) -> str:
        """Return why something may not be read, or nothing."""
        ...


@runtime_checkable
class ReadGate(Protocol):
    """A policy that may want to be asked before each read through us."""

    @property
    def asks_reads(self) -> bool:
        """Whether it wants to."""
        ...


Answer = Decision | bool
Callback = Callable[[Question], Answer | Awaitable[Answer]]
"""Asks a person, or whoever else decides; True allows and False denies."""


def allow_all() -> Policy:
    """Return the policy that allows everything."""
    return _Always(Decision("allow", reason="everything is allowed here"))


def deny_all() -> Policy:
    """Return the policy that allows nothing."""
    return _Always(Decision("deny", reason="nothing is allowed here"))


def allow_reads() -> Policy:
    """Return the policy that allows to read in the session's directories, and nothing else."""
    return _AllowReads()


def ask(callback: Callback, *, timeout_s: float | None = ASK_TIMEOUT_S, reads: bool = False) -> Policy:
    """Return the policy that leaves every decision to a function, which may be async: a person or a service.

    It is asked before each call that the agent asks about, and before each file that the agent writes and each command
    that it runs through us; with `reads` also before each file that it reads through us. An action that it allowed when
    the agent asked is not asked again when the agent does exactly that, once, by us.

    Only True and a `Decision` that allows allow. A function that fails denies, and so does an async one that takes
    longer than `timeout_s`. When the turn is cancelled, the function is too, and the agent is answered `cancelled`.
    """
    return _Ask(callback, timeout_s, asks_reads=reads)


def as_policy(given: "Policy | Callback | None") -> Policy:
    """Return a policy: the one that was given, `ask` with a function, `deny_all` for nothing."""
    if given is None:
        return deny_all()
    return given if isinstance(given, Policy) else ask(given)


def rules(
    given: Iterable[PolicyRule | str],
    *,
    ask: Callback | None = None,
    otherwise: Literal["allow", "deny", "ask"] = "deny",
) -> Policy:
    """Return the policy of these rules, the first that matches wins; where none does, `otherwise` holds.

    Raises BadRule for a text that is none, and for a rule that asks when there is nobody to ask.
    """
    parsed = tuple(rule if isinstance(rule, PolicyRule) else parse_rule(rule) for rule in given)
    asking = [str(rule) for rule in parsed if rule.verdict == "ask"] or (["ask:any"] if otherwise == "ask" else [])
    if asking and ask is None:
        raise BadRule(asking[0], "asks, and there is nobody to ask: give `rules` a function as `ask`, or write deny")
    return _Rules(parsed, _Ask(ask, ASK_TIMEOUT_S) if ask is not None else None, otherwise)


def choose_option(decision: Decision, options: Sequence[v1.PermissionOption]) -> v1.PermissionOption | None:
    """Return the option that the decision names if it fits, else the default of `permission_options`.

    Options of other kinds than the protocol's are never chosen. None where no option fits the decision.
    """
    verdict = "allow" if decision.verdict == "allow" else "reject"
    for option in options:
        if option.option_id == decision.option_id and option.kind in (f"{verdict}_once", f"{verdict}_always"):
            return option
    position = find_default([option.kind for option in options], verdict)
    return None if position is None else options[position]


def choose_outcome(decision: Decision, options: Sequence[v1.PermissionOption]) -> v1.SelectedPermissionOutcome:
    """Return the answer to the agent: a no where no option fits a yes.

    An agent that offers no way to say no has asked wrongly: raises InvalidParams, because `cancelled` would mean that
    the turn was.
    """
    option = choose_option(decision, options)
    if option is not None:
        offered = [each.scope for each in read_scopes(option)]
        meta = {REMEMBER_KEY: decision.remember} if decision.remember in offered else None
        return v1.SelectedPermissionOutcome(option_id=option.option_id, meta=meta)
    if decision.verdict == "allow":
        return choose_outcome(Decision("deny"), options)
    raise InvalidParams(
        "params.options", "there is no option that rejects, and that is the answer", expected="reject_once"
    )


class _Always:
    def __init__(self, decision: Decision) -> None:
        self._decision = decision

    async def decide(self, question: Question) -> Decision:
        del question
        return self._decision


class _AllowReads:
    async def decide(self, question: Question) -> Decision:
        for action in single_actions(question.action):
            if not isinstance(action, Read):
                return Decision("deny", reason=f"only reading is allowed here, and this is {describe(action)}")
            if action.root is None:
                return Decision("deny", reason=f"{action.path} is outside the session's directories")
        return Decision("allow", reason="it only reads, inside the session's directories")


class _Ask:
    def __init__(self, callback: Callback, timeout_s: float | None, *, asks_reads: bool = False) -> None:
        self.asks_reads = asks_reads
        self._callback = callback
        self._timeout_s = timeout_s
        self._grants: OrderedDict[bytes, None] = OrderedDict()

    async def decide(self, question: Question) -> Decision:
        if not question.options and self._take_grants(question):
            return Decision("allow", reason="exactly this was allowed when the agent asked")
        answer = self._callback(question)
        if inspect.isawaitable(answer):
            limit = asyncio.timeout(self._timeout_s)
            try:
                async with limit:
                    answer = await answer
            except TimeoutError:
                if not limit.expired():
                    raise
                return Decision("deny", reason=f"nobody decided within {self._timeout_s:g} s")
        decision = answer if isinstance(answer, Decision) else Decision("allow" if answer is True else "deny")
        if decision.verdict == "allow" and question.options:
            self._grant(question)
        return decision

    def _grant(self, question: Question) -> None:
        for token in _tokens(question):
            self._grants[token] = None
        while len(self._grants) > MAX_GRANTS:
            self._grants.popitem(last=False)

    def _take_grants(self, question: Question) -> bool:
        tokens = _tokens(question)
        if not tokens or not all(token in self._grants for token in tokens):
            return False
        for token in tokens:
            del self._grants[token]
        return True


class _Rules:
    def __init__(self, given: tuple[PolicyRule, ...], person: _Ask | None, otherwise: Verdict) -> None:
        self._rules = given
        self._person = person
        self._otherwise: Verdict = otherwise

    async def decide(self, question: Question) -> Decision:
        found = [
            each
            for action in single_actions(question.action)
            for each in first_matches(self._rules, action, question.tool_call.title, question.cwd)
        ]
        verdict, reason = min((self._judge(*each) for each in found), key=lambda each: _WORST_FIRST.index(each[0]))
        if verdict == "ask" and self._person is not None:
            return await self._person.decide(question)
        return Decision("allow" if verdict == "allow" else "deny", reason=reason)

    def forbid_read(self, read: Read, cwd: str) -> str:
        """Return why something may not be read through us: only where a rule denies it."""
        _, rule = first_matches(self._rules, read, "", cwd)[0]
        return f"the rule {rule} denies it" if rule is not None and rule.verdict == "deny" else ""

    def _judge(self, action: SingleAction, rule: PolicyRule | None) -> tuple[Verdict, str]:
        if rule is None:
            return self._otherwise, f"no rule speaks of {describe(action)}"
        return rule.verdict, f"the rule {rule} speaks of {describe(action)}"


_WORST_FIRST: tuple[Verdict, ...] = ("deny", "ask", "allow")


def describe(action: SingleAction) -> str:
    """Describe an action, in words that follow "this is"."""
    match action:
        case Read(path):
            return f"reading {path}"
        case Write(path):
            return f"writing {path}"
        case Run(command):
            return f"running {command!r}"
        case Foreign(title):
            return f"a tool of the agent ({title!r})"


def _tokens(question: Question) -> list[bytes]:
    """Return a digest for each exact action: a command in its directory, a path with its new text."""
    texts = {item.path: item.new_text for item in question.tool_call.content if isinstance(item, v1.Diff)}
    tokens: list[bytes] = []
    for action in single_actions(question.action):
        match action:
            case Run(command, cwd, variables):
                tokens.append(_token(question.session_id, "run", command, cwd or question.cwd, *variables))
            case Write(path):
                text = texts.get(path)
                if text is not None:
                    tokens.append(_token(question.session_id, "write", path, text))
            case _:
                pass
    return tokens


def _token(*parts: str) -> bytes:
    return hashlib.sha256(msgspec.json.encode(parts)).digest()
