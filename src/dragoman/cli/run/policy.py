"""`--policy`: the policy of a run, by name or by rules."""

import shlex
from collections.abc import Sequence

from dragoman.cli.options import UsageError
from dragoman.client import BadRule, Decision, Policy, Question, allow_all, allow_reads, ask, deny_all, rules
from dragoman.client.policy import Callback, parse_rule
from dragoman.protocol.permission_options import USE_AGENT_FILE
from dragoman.text import visible

NAMES = ("deny", "reads", "all", "ask")
HINT = "--policy all allows it"


def make_policy(given: Sequence[str], person: Callback | None, *, is_own: bool = False) -> Policy:
    """Return the policy that the command line asks for; `person` asks the person at the terminal, if there is one.

    `is_own` is for dragoman's own agent, whose agent file can be named on the command line. Raises UsageError.
    """
    policy = _parse(given, person)
    return _AgentFileNamed(policy) if is_own else policy


def _parse(given: Sequence[str], person: Callback | None) -> Policy:
    words = [line.strip() for each in given for line in each.splitlines() if line.strip()]
    if not words:
        return ask(person) if person else _Explained(deny_all(), f"nobody was asked; {HINT}")
    if len(words) == 1 and words[0] in NAMES:
        return _named(words[0], person)
    return _ruled(words, person)


def _named(name: str, person: Callback | None) -> Policy:
    match name:
        case "all":
            return allow_all()
        case "reads":
            return _Explained(allow_reads(), f"--policy reads allows to read in the session's directory only; {HINT}")
        case "ask" if person is not None:
            return ask(person)
        case "ask":
            raise UsageError("--policy ask needs a terminal: stdin and stderr have to be one")
        case _:
            return _Explained(deny_all(), f"--policy deny allows nothing; {HINT}")


def _ruled(words: Sequence[str], person: Callback | None) -> Policy:
    for word in words:
        if word in NAMES:
            raise UsageError(f"--policy {word} stands alone; beside others, write rules such as allow:read or deny:any")
    try:
        parsed = [parse_rule(word) for word in words]
    except BadRule as error:
        raise UsageError(f"{error}; or it is one of {', '.join(NAMES)}") from None
    asking = [word for word, rule in zip(words, parsed, strict=True) if rule.verdict == "ask"]
    if asking and person is None:
        raise UsageError(f"the rule {asking[0]!r} asks, and that needs a terminal: stdin and stderr have to be one")
    return rules(parsed, ask=person, otherwise="ask" if person else "deny")


class _Explained:
    """A policy whose reasons say how to allow a denied action."""

    def __init__(self, policy: Policy, reason: str) -> None:
        self._policy = policy
        self._reason = reason

    async def decide(self, question: Question) -> Decision:
        decision = await self._policy.decide(question)
        return decision if decision.verdict == "allow" else Decision("deny", reason=self._reason)


class _AgentFileNamed:
    """A policy that tells how to use the agent file of a project when it denies that: `all` would allow far more."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    async def decide(self, question: Question) -> Decision:
        decision = await self._policy.decide(question)
        is_refused = decision.verdict == "deny" and decision.reason
        if not is_refused or question.tool_call.name != USE_AGENT_FILE or not question.tool_call.locations:
            return decision
        path = question.tool_call.locations[0].path.removeprefix(f"{question.cwd.rstrip('/')}/")
        named = shlex.quote(visible(path))
        return Decision("deny", reason=f"{decision.reason.removesuffix(f'; {HINT}')}; --agent {named} uses it")
