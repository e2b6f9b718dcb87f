"""The findings of judges, and the result for each rule over several conversations."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.rule import VERSIONS, Level, Role, Rule, Version
from dragoman.check.rules import REMOTE_AREAS, RULES

if TYPE_CHECKING:
    from dragoman.check.judge import Judge

Verdict = Literal["pass", "fail", "warn", "not_exercised", "error"]
"""What is found for a rule."""


class Finding(msgspec.Struct, frozen=True):
    """A breach of a rule, and the numbers of the entries that prove it."""

    rule: str
    verdict: Literal["fail", "warn"]
    detail: str
    entries: tuple[int, ...]


class Fault(msgspec.Struct, frozen=True):
    """A mistake of the checker itself, in one area, at one entry."""

    area: str
    detail: str
    entry: int


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a conversation as a report shows it."""

    conversation: str
    n: int
    at_s: float
    sender: Side
    line: str = ""
    event: str = ""


class Result(msgspec.Struct, frozen=True):
    """The result of one rule over all conversations in one version of the protocol."""

    id: str
    title: str
    level: Level
    verdict: Verdict
    clause: str
    detail: str
    evidence: list[Evidence]
    fix: str = ""
    url: str = ""
    occasions: int = 0
    protocol: Version = 1

    @property
    def key(self) -> str:
        """Return the id of the rule, with the version of the protocol behind it if that is not version 1."""
        return self.id if self.protocol == 1 else f"{self.id}@{self.protocol}"


class VerdictCounts(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """How many rules have each verdict."""

    passed: int = 0
    fail: int = 0
    warn: int = 0
    not_exercised: int = 0
    error: int = 0


class CheckReport(msgspec.Struct, frozen=True):
    """All results about one side, with their count."""

    role: Role
    results: list[Result]
    summary: VerdictCounts

    @property
    def protocols(self) -> list[Version]:
        """Return the versions of the protocol that were judged."""
        return sorted({each.protocol for each in self.results})

    def exit_code(self, level: Literal["must", "should"] = "should") -> int:
        """Return 2 when the checker itself failed, 1 when a rule of this level or a graver one did, else 0."""
        if self.summary.error:
            return 2
        graver = ("must",) if level == "must" else ("must", "should")
        return int(any(each.verdict == "fail" and each.level in graver for each in self.results))


def summarize(results: list[Result]) -> VerdictCounts:
    """Count the verdicts."""
    verdicts = [result.verdict for result in results]
    return VerdictCounts(
        verdicts.count("pass"),
        verdicts.count("fail"),
        verdicts.count("warn"),
        verdicts.count("not_exercised"),
        verdicts.count("error"),
    )


MAX_SHOWN = 3
"""Findings of one rule whose messages are shown; the rest are counted."""


def conclude(judges: Sequence["Judge"], role: Role, versions: Collection[Version] = ()) -> list[Result]:
    """Return the result of every rule on one side, over all conversations.

    The versions of the protocol are those given, else those that were spoken. Rules on HTTP and WebSockets are left
    out where none of their area had an occasion: most agents have no URL.
    """
    results: list[Result] = []
    spoken: Collection[Version] = versions or {judge.version for judge in judges}
    for version in sorted(spoken) or VERSIONS[:1]:
        judged = [judge for judge in judges if judge.version == version]
        left_out = REMOTE_AREAS - {RULES[name].area for judge in judged for name in judge.occasions}
        rules = [rule for rule in RULES.values() if rule.role == role and version in rule.versions]
        rules = [rule for rule in rules if rule.area not in left_out]
        results += [_conclude_rule(rule, judged, version) for rule in rules]
    return results


def report(judges: Sequence["Judge"], role: Role, versions: Collection[Version] = ()) -> CheckReport:
    """Return the results about one side, with their count."""
    results = conclude(judges, role, versions)
    return CheckReport(role, results, summarize(results))


def _conclude_rule(rule: Rule, judges: Sequence["Judge"], version: Version) -> Result:
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
        clause=rule.clauses[version],
        detail=_describe(rule, verdict, [each for _, each in found], faults),
        evidence=evidence,
        fix=rule.fix if verdict in ("fail", "warn") else "",
        url=rule.url_in(version),
        occasions=occasions,
        protocol=version,
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


def show(conversation: RecordedConversation, finding: Finding) -> Iterable[Evidence]:
    """Yield the entries that prove a finding."""
    for n in finding.entries:
        entry = conversation.find(n)
        if entry is not None:
            line = entry.line.decode("utf-8", "backslashreplace")
            yield Evidence(conversation.name, entry.n, entry.at_s, entry.sender, line, entry.event)
