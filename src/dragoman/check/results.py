"""The findings of judges, and the result for each rule over several conversations."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from dragoman.check.conversation import RecordedConversation, Side
from dragoman.check.rule import VERSIONS, Level, Rule, Version
from dragoman.check.rules import REMOTE_AREAS, RULES

if TYPE_CHECKING:
    from dragoman.check.judge import Judge

Verdict = Literal["pass", "fail", "warn", "not_exercised", "error"]
"""The outcome for a rule."""


class Finding(msgspec.Struct, frozen=True):
    """A breach of a rule, and the numbers of the entries that prove it."""

    rule: str
    verdict: Literal["fail", "warn"]
    detail: str
    entries: tuple[int, ...]


class CheckerFailure(msgspec.Struct, frozen=True):
    """A mistake of the checker itself, in one area, at one entry."""

    area: str
    detail: str
    entry: int


class Evidence(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a conversation as shown in a report."""

    conversation: str
    n: int
    at_s: float
    sender: Side
    line: str = ""
    event: str = ""


class Result(msgspec.Struct, frozen=True):
    """The result of one rule over all conversations in one protocol version."""

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
        """The id of the rule, followed by the protocol version if that is not version 1."""
        return self.id if self.protocol == 1 else f"{self.id}@{self.protocol}"


class VerdictCounts(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """The number of rules with each verdict."""

    passed: int = 0
    fail: int = 0
    warn: int = 0
    not_exercised: int = 0
    error: int = 0


class CheckReport(msgspec.Struct, frozen=True):
    """All results about one side, with their counts."""

    side: Side
    results: list[Result]
    summary: VerdictCounts

    @property
    def protocols(self) -> list[Version]:
        """The protocol versions that were judged."""
        return sorted({each.protocol for each in self.results})

    def exit_code(self, level: Literal["must", "should"] = "should") -> int:
        """Return 2 if the checker itself failed, 1 if a rule of this level or a more severe one failed, else 0."""
        if self.summary.error:
            return 2
        graver = ("must",) if level == "must" else ("must", "should")
        return int(any(each.verdict == "fail" and each.level in graver for each in self.results))


def count_verdicts(results: list[Result]) -> VerdictCounts:
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
"""Maximum number of findings per rule whose messages are shown. The others are counted."""


def conclude(judges: Sequence["Judge"], side: Side, versions: Collection[Version] = ()) -> list[Result]:
    """Return the result of every rule for one side, over all conversations.

    `versions` defaults to the versions in the conversations. Rules about HTTP and WebSockets are left out if no rule of
    their area had an occasion, because most agents have no URL.
    """
    results: list[Result] = []
    spoken: Collection[Version] = versions or {judge.version for judge in judges}
    for version in sorted(spoken) or VERSIONS[:1]:
        judged = [judge for judge in judges if judge.version == version]
        left_out = REMOTE_AREAS - {RULES[name].area for judge in judged for name in judge.occasions}
        rules = [rule for rule in RULES.values() if rule.side == side and version in rule.versions]
        rules = [rule for rule in rules if rule.area not in left_out]
        results += [_conclude_rule(rule, judged, version) for rule in rules]
    return results


def make_report(judges: Sequence["Judge"], side: Side, versions: Collection[Version] = ()) -> CheckReport:
    """Return the results about one side, with their counts."""
    results = conclude(judges, side, versions)
    return CheckReport(side, results, count_verdicts(results))


def _conclude_rule(rule: Rule, judges: Sequence["Judge"], version: Version) -> Result:
    """Return the result of a rule from the findings of all judges, failures first."""
    found = [(judge.conversation, each) for judge in judges for each in judge.findings if each.rule == rule.id]
    found.sort(key=lambda pair: pair[1].verdict != "fail")
    failures = [each for judge in judges for each in judge.failures if each.area == rule.area]
    occasions = sum(judge.occasions[rule.id] for judge in judges)
    verdict = _weigh([each for _, each in found], failures, occasions)
    evidence = [each for conversation, finding in found[:MAX_SHOWN] for each in find_evidence(conversation, finding)]
    return Result(
        id=rule.id,
        title=rule.title,
        level=rule.level,
        verdict=verdict,
        clause=rule.clauses[version],
        detail=_describe(rule, verdict, [each for _, each in found], failures),
        evidence=evidence,
        fix=rule.fix if verdict in ("fail", "warn") else "",
        url=rule.url_in(version),
        occasions=occasions,
        protocol=version,
    )


def _weigh(findings: list[Finding], failures: list[CheckerFailure], occasions: int) -> Verdict:
    verdicts = {each.verdict for each in findings}
    if "fail" in verdicts:
        return "fail"
    if failures:
        return "error"
    if "warn" in verdicts:
        return "warn"
    return "pass" if occasions else "not_exercised"


def _describe(rule: Rule, verdict: Verdict, findings: list[Finding], failures: list[CheckerFailure]) -> str:
    match verdict:
        case "fail" | "warn":
            more = len(findings) - 1
            return findings[0].detail + (f" (and {more} more)" if more else "")
        case "error":
            return failures[0].detail
        case "not_exercised":
            return f"needed: {rule.exercised}"
        case "pass":
            return ""


def find_evidence(conversation: RecordedConversation, finding: Finding) -> Iterable[Evidence]:
    """Yield the entries that prove a finding."""
    for n in finding.entries:
        entry = conversation.find(n)
        if entry is not None:
            line = entry.line.decode("utf-8", "backslashreplace")
            yield Evidence(conversation.name, entry.n, entry.at_s, entry.sender, line, entry.event)
