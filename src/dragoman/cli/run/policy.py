"""`--policy`: the permission policy of a run, from a name or rules."""

import shlex
from collections.abc import Sequence

from dragoman.cli.options import UsageError
from dragoman.client.errors import InvalidRuleError
from dragoman.client.permission.policy import PolicyCallback
from dragoman.client.permission.rule import parse_rule
from dragoman.client.policies import (
    Decision,
    PermissionQuestion,
    Policy,
    allow_all,
    allow_reads,
    ask_user,
    deny_all,
    rules,
)
from dragoman.protocol.permission_options import USE_AGENT_FILE, USE_SKILLS
from dragoman.text import visible

NAMES = ("deny", "reads", "all", "ask")
HINT = "--policy all allows it"


def make_policy(texts: Sequence[str], ask: PolicyCallback | None, *, is_own: bool = False) -> Policy:
    """Return the policy that the command line selects. `ask` asks the user at the terminal, or is None without one.

    `is_own` is true for dragoman's own agent, whose agent file can be named on the command line. Raises UsageError.
    """
    policy = _parse(texts, ask)
    return _AgentFileNamed(policy) if is_own else policy


def _parse(texts: Sequence[str], ask: PolicyCallback | None) -> Policy:
    lines = [line.strip() for each in texts for line in each.splitlines() if line.strip()]
    if not lines:
        return ask_user(ask) if ask else _Explained(deny_all(), f"no user could be asked; {HINT}")
    if len(lines) == 1 and lines[0] in NAMES:
        return _named(lines[0], ask)
    return _ruled(lines, ask)


def _named(name: str, ask: PolicyCallback | None) -> Policy:
    match name:
        case "all":
            return allow_all()
        case "reads":
            return _Explained(allow_reads(), f"--policy reads allows only reading in the session's directory; {HINT}")
        case "ask" if ask is not None:
            return ask_user(ask)
        case "ask":
            raise UsageError("--policy ask needs a terminal for stdin and stderr")
        case _:
            return _Explained(deny_all(), f"--policy deny allows nothing; {HINT}")


def _ruled(lines: Sequence[str], ask: PolicyCallback | None) -> Policy:
    for word in lines:
        if word in NAMES:
            raise UsageError(f"--policy {word} cannot be combined; write rules such as allow:read or deny:any")
    try:
        parsed = [parse_rule(word) for word in lines]
    except InvalidRuleError as error:
        raise UsageError(f"{error}; or use one of {', '.join(NAMES)}") from None
    asking = [word for word, rule in zip(lines, parsed, strict=True) if rule.verdict == "ask"]
    if asking and ask is None:
        raise UsageError(f"the rule {asking[0]!r} asks the user, which needs a terminal for stdin and stderr")
    return rules(parsed, ask=ask, otherwise="ask" if ask else "deny")


class _Explained:
    """A policy whose denials explain how to allow the action."""

    def __init__(self, policy: Policy, reason: str) -> None:
        self._policy = policy
        self._reason = reason

    async def decide(self, question: PermissionQuestion) -> Decision:
        decision = await self._policy.decide(question)
        return decision if decision.verdict == "allow" else Decision("deny", reason=self._reason)


class _AgentFileNamed:
    """A policy that suggests another way when it denies what a project brings, because `all` would allow far more."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def decide(self, question: PermissionQuestion) -> Decision:
        decision = await self._policy.decide(question)
        is_refused = decision.verdict == "deny" and decision.reason
        if not is_refused or not question.tool_call.locations:
            return decision
        if question.tool_call.name == USE_SKILLS:
            return Decision("deny", reason=f"{decision.reason.removesuffix(f'; {HINT}')}; `dragoman chat` asks you")
        if question.tool_call.name != USE_AGENT_FILE:
            return decision
        path = question.tool_call.locations[0].path.removeprefix(f"{question.cwd.rstrip('/')}/")
        named = shlex.quote(visible(path))
        return Decision("deny", reason=f"{decision.reason.removesuffix(f'; {HINT}')}; --agent {named} uses it")
