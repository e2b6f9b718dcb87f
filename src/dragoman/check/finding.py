"""What the judge found, and what it comes to for each rule."""

from typing import Literal

import msgspec

from dragoman.check.conversation import Side
from dragoman.check.rule import Level, Role

Verdict = Literal["pass", "fail", "warn", "not_exercised", "error"]


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
    """What became of one rule over all that was seen."""

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


class Summary(msgspec.Struct, frozen=True, rename={"passed": "pass"}):
    """How many rules came to which verdict."""

    passed: int = 0
    fail: int = 0
    warn: int = 0
    not_exercised: int = 0
    error: int = 0


class Report(msgspec.Struct, frozen=True):
    """All results about one side, with their count."""

    role: Role
    results: list[Result]
    summary: Summary

    def exit_code(self, level: Literal["must", "should"] = "should") -> int:
        """Return 2 when the checker itself failed, 1 when a rule of this level or a graver one did, else 0."""
        if self.summary.error:
            return 2
        graver = ("must",) if level == "must" else ("must", "should")
        return int(any(each.verdict == "fail" and each.level in graver for each in self.results))


def summarize(results: list[Result]) -> Summary:
    """Count the verdicts."""
    verdicts = [result.verdict for result in results]
    return Summary(
        verdicts.count("pass"),
        verdicts.count("fail"),
        verdicts.count("warn"),
        verdicts.count("not_exercised"),
        verdicts.count("error"),
    )
