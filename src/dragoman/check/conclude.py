"""From what judges saw in several conversations to one result a rule."""

from collections.abc import Iterable, Sequence

from dragoman.check.catalogue import RULES
from dragoman.check.conversation import Conversation
from dragoman.check.finding import Evidence, Fault, Finding, Report, Result, Verdict, summarize
from dragoman.check.judge import Judge
from dragoman.check.rule import Role, Rule

MAX_SHOWN = 3
"""Findings of one rule whose messages are shown; the rest are counted."""


def conclude(judges: Sequence[Judge], role: Role) -> list[Result]:
    """Return the result of every rule on one side, over all conversations."""
    return [_conclude_rule(rule, judges) for rule in RULES.values() if rule.role == role]


def report(judges: Sequence[Judge], role: Role) -> Report:
    """Return the results about one side, with their count."""
    results = conclude(judges, role)
    return Report(role, results, summarize(results))


def _conclude_rule(rule: Rule, judges: Sequence[Judge]) -> Result:
    found = [(judge.conversation, each) for judge in judges for each in judge.findings if each.rule == rule.id]
    faults = [each for judge in judges for each in judge.faults if each.area == rule.area]
    occasions = sum(judge.occasions[rule.id] for judge in judges)
    verdict = _weigh([each for _, each in found], faults, occasions)
    evidence = [each for conversation, finding in found[:MAX_SHOWN] for each in show(conversation, finding)]
    return Result(
        id=rule.id,
        title=rule.title,
        level=rule.level,
        verdict=verdict,
        clause=rule.clause,
        detail=_describe(rule, verdict, [each for _, each in found], faults),
        evidence=evidence,
        fix=rule.fix if verdict in ("fail", "warn") else "",
        url=rule.url,
        occasions=occasions,
    )


def _weigh(findings: list[Finding], faults: list[Fault], occasions: int) -> Verdict:
    verdicts = {each.verdict for each in findings}
    if "fail" in verdicts:
        return "fail"
    if faults:
        return "error"
    if "warn" in verdicts:
        return "warn"
    return "pass" if occasions else "not_exercised"


def _describe(rule: Rule, verdict: Verdict, findings: list[Finding], faults: list[Fault]) -> str:
    match verdict:
        case "fail" | "warn":
            more = len(findings) - 1
            return findings[0].detail + (f" (and {more} more)" if more else "")
        case "error":
            return faults[0].detail
        case "not_exercised":
            return f"needed: {rule.exercised}"
        case "pass":
            return ""


def show(conversation: Conversation, finding: Finding) -> Iterable[Evidence]:
    """Yield the entries that prove a finding."""
    for n in finding.entries:
        entry = conversation.find(n)
        if entry is not None:
            line = entry.line.decode("utf-8", "backslashreplace")
            yield Evidence(conversation.name, entry.n, entry.at_s, entry.sender, line, entry.event)
