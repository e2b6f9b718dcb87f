"""A report for a terminal: failures first, each with the messages that prove it and the fix."""

import textwrap
from collections.abc import Iterator

from dragoman.check.reports.named_report import WORDS, NamedReport
from dragoman.check.results import Evidence, Result, Verdict
from dragoman.text import one_line

MAX_EVIDENCE = 4
"""Maximum number of messages shown per result. The other formats show all."""

_COLOURS: dict[Verdict, str] = {"error": "35", "fail": "31", "warn": "33", "pass": "32", "not_exercised": "2"}
_ARROWS = {"client": "→", "agent": "←"}
_INDENT = " " * 6


def render(subject: NamedReport, *, width: int = 100, colours: bool = False, verbose: bool = False) -> str:
    """Render a report. `verbose` also shows rules that passed or were not exercised."""
    return "\n".join(_Terminal(width, colours=colours).lines(subject, verbose=verbose)) + "\n"


class _Terminal:
    def __init__(self, width: int, *, colours: bool) -> None:
        self._width = max(40, width)
        self._colours = colours

    def lines(self, subject: NamedReport, *, verbose: bool) -> Iterator[str]:
        yield f"{one_line(subject.name, max(20, self._width - len(subject.counts) - 2))}: {subject.counts}"
        for result in subject.ordered:
            if result.verdict in ("error", "fail", "warn"):
                yield ""
                yield from self._result(result, is_known=subject.is_known(result))
        others = [result for result in subject.ordered if result.verdict in ("pass", "not_exercised")]
        if verbose and others:
            yield ""
            for result in others:
                yield from self._short(result)
        elif subject.report.summary.not_exercised:
            yield ""
            yield "--verbose also shows the rules that were not exercised, and what they need."

    def _result(self, result: Result, *, is_known: bool) -> Iterator[str]:
        known = " (known)" if is_known else ""
        yield f"{self._word(result.verdict)}{known}  {result.key}  {result.level}  {result.title}"
        yield from self._wrapped(one_line(result.detail, 600))
        for evidence in result.evidence[:MAX_EVIDENCE]:
            yield self._evidence(evidence)
        more = len(result.evidence) - MAX_EVIDENCE
        if more > 0:
            yield f"{_INDENT}  … and {more} more"
        if result.fix:
            yield from self._wrapped(one_line(f"Fix: {result.fix}"))
        yield f"{_INDENT}{self._dim(result.url or result.clause)}"

    def _short(self, result: Result) -> Iterator[str]:
        yield f"{self._word(result.verdict)}  {result.key}  {result.title}"
        if result.verdict == "not_exercised":
            yield from self._wrapped(one_line(result.detail))

    def _evidence(self, evidence: Evidence) -> str:
        line = evidence.event or evidence.line
        head = f"{_INDENT}  {evidence.n:>4} {_ARROWS[evidence.sender]} "
        return self._dim(head + one_line(f"[{line}]" if evidence.event else line, self._width - len(head)))

    def _wrapped(self, text: str) -> list[str]:
        return textwrap.wrap(text, self._width, initial_indent=_INDENT, subsequent_indent=_INDENT)

    def _word(self, verdict: Verdict) -> str:
        word = WORDS[verdict].upper() if verdict in ("error", "fail", "warn") else WORDS[verdict]
        return f"\x1b[{_COLOURS[verdict]}m{word}\x1b[0m" if self._colours else word

    def _dim(self, text: str) -> str:
        return f"\x1b[2m{text}\x1b[0m" if self._colours else text
