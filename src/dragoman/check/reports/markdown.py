"""Reports as one Markdown table: a row per rule, a column per subject."""

import re
from collections.abc import Sequence
from html import escape

from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import Result, Verdict
from dragoman.check.rules import AREAS
from dragoman.text import one_line

MARKS: dict[Verdict, str] = {"pass": "pass", "fail": "**FAIL**", "warn": "warn", "not_exercised": "-", "error": "error"}

_SPECIAL = re.compile(r"([\\`*_{}\[\]#|!~])")


def render(subject: NamedReport) -> str:
    """Render the table of one subject, and its faults."""
    return matrix([subject])


def matrix(subjects: Sequence[NamedReport]) -> str:
    """Render the table of several subjects, followed by the faults of each."""
    found = {result.key: result for subject in subjects for result in subject.report.results}
    rules = sorted(found, key=lambda key: found[key].protocol)  # stable, so each version keeps its order
    by_key = [{result.key: result for result in subject.report.results} for subject in subjects]
    names = [_escape(subject.name) for subject in subjects]
    lines = ["| rule | level | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    area = ""
    for rule in rules:
        result = found[rule]
        title = AREAS.get(rule.split("-")[1], "") + ("" if result.protocol == 1 else f", version {result.protocol}")
        if title != area:
            area = title
            lines.append(f"| **{_escape(area)}** |  |" + "  |" * len(names))
        cells = " | ".join(_mark(results.get(rule)) for results in by_key)
        lines.append(f"| {rule} {_escape(result.title)} | {result.level} | {cells} |")
    lines += ["", *(f"- {name}: {subject.counts}." for name, subject in zip(names, subjects, strict=True))]
    for name, subject in zip(names, subjects, strict=True):
        lines += _faults(name, subject)
    return "\n".join(lines) + "\n"


def _mark(result: Result | None) -> str:
    return "" if result is None else MARKS[result.verdict]


def _faults(name: str, subject: NamedReport) -> list[str]:
    faults = [result for result in subject.ordered if result.verdict in ("error", "fail", "warn")]
    if not faults:
        return []
    return [
        "",
        f"### {name}",
        "",
        *(
            f"- {MARKS[result.verdict]} {result.key}{' (known)' if subject.is_known(result) else ''}: "
            f"{_escape(result.detail)}"
            for result in faults
        ),
    ]


def _escape(text: str) -> str:
    return escape(_SPECIAL.sub(r"\\\1", one_line(text, 300)), quote=False)
