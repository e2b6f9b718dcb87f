"""What a report is about."""

import msgspec

from dragoman.check.finding import Report, Result, Verdict
from dragoman.check.rule import Level

ORDER: tuple[Verdict, ...] = ("error", "fail", "warn", "not_exercised", "pass")
"""The verdicts, the gravest first."""

LEVELS: tuple[Level, ...] = ("must", "should", "disputed")

WORDS: dict[Verdict, str] = {
    "error": "error",
    "fail": "fail",
    "warn": "warn",
    "not_exercised": "not exercised",
    "pass": "pass",
}


class Subject(msgspec.Struct, frozen=True):
    """A report, the name of what was judged, and the failures of it that are known already."""

    name: str
    report: Report
    known: frozenset[str] = frozenset()

    @property
    def ordered(self) -> list[Result]:
        """The results, the gravest first, what is known already after what is new."""
        return sorted(
            self.report.results,
            key=lambda each: (ORDER.index(each.verdict), each.id in self.known, LEVELS.index(each.level)),
        )

    def is_known(self, result: Result) -> bool:
        """Tell whether a failure was there before."""
        return result.verdict == "fail" and result.id in self.known

    @property
    def counts(self) -> str:
        """The summary in words, without what is zero."""
        summary = self.report.summary
        numbers = (
            (summary.error, "errors of the checker"),
            (summary.fail, "failed"),
            (summary.warn, "warnings"),
            (summary.passed, "passed"),
            (summary.not_exercised, "not exercised"),
        )
        return ", ".join(f"{number} {word}" for number, word in numbers if number) or "nothing was judged"
