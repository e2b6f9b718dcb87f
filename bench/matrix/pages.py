"""The two pages: the table, and the findings with what proves them."""

from collections.abc import Mapping, Sequence

import msgspec

from bench.matrix.checked import Checked, plain
from bench.matrix.confirmed import Confirmed, findings
from bench.matrix.subject import Subject
from dragoman.check.reports.markdown import matrix
from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import CheckReport, Evidence, Result, summarize
from dragoman.check.rules import RULES

MAX_MESSAGES = 4
MAX_LETTERS = 260
HOW = {"reading": "by reading", "reproducing": "by doing it again by hand"}

Column = tuple[Subject, Checked]
Word = Mapping[tuple[str, str], Confirmed]


def matrix_page(columns: Sequence[Column], missing: Mapping[str, str], word: Word) -> str:
    """Write docs/check-matrix.md."""
    lines = [
        "# Who keeps the rules",
        "",
        "`dragoman check` was run against the agents and clients that install with pip and npm. `make matrix` makes",
        "this page and [the findings](check-findings.md): every FAIL and warn of the tables was confirmed by hand,",
        "with the messages that prove it. `-` means that there was no occasion for the rule: an agent that was not led",
        "to ask for a permission cannot be judged by how it asks. [The rules](check-rules.md) say what each needs.",
        "",
        "| checked | version | date | what it is, and how it was steered | pass | fail | warn | - |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for subject, checked in columns:
        found = _settled(subject, checked, word).summary
        lines.append(
            f"| {subject.name} | {checked.version} | {checked.date} | {subject.about} "
            f"| {found.passed} | {found.fail} | {found.warn} | {found.not_exercised} |"
        )
    lines += [f"| {name} |  |  | left out: {why} |  |  |  |  |" for name, why in missing.items()]
    for role, title in (("agent", "Agents"), ("client", "Clients")):
        chosen = [(subject, checked) for subject, checked in columns if subject.role == role]
        subjects = [NamedReport(subject.name, _settled(subject, checked, word)) for subject, checked in chosen]
        if subjects:
            table = matrix(subjects).split("\n\n", 1)[0]
            lines += ["", f"## {title}", "", table]
    return "\n".join(lines) + "\n"


def findings_page(columns: Sequence[Column], word: Word) -> str:
    """Write docs/check-findings.md."""
    lines = [
        "# What was found, and how it was confirmed",
        "",
        "Each FAIL and warn of [the matrix](check-matrix.md), with the messages that prove it: of several findings of",
        "a rule the first, cut where it is long. `->` is what the client sent, `<-` what the agent did. Each was held",
        "against its clause by hand: by reading, the messages and the source that made them, or by doing it again with",
        "lines typed into its stdin, without the checker. A warn rests on a clause that is disputed.",
    ]
    for subject, checked in columns:
        found = findings(checked)
        if found:
            lines += ["", f"## {subject.name} {checked.version}"]
        for result in found:
            lines += _describe(result, word.get((subject.name, result.id)))
    return "\n".join(lines) + "\n"


def _describe(result: Result, said: Confirmed | None) -> list[str]:
    aside = said is not None and said.by == "aside"
    verdict = "set aside" if aside else result.verdict
    return [
        "",
        f"### {result.id} {result.title}",
        "",
        f"{verdict}, {result.level}, [{result.clause}]({RULES[result.id].url}): {plain(result.detail, 300)}.",
        "",
        _confirm(said),
        "",
        "```text",
        *(_show(each) for each in _first(result.evidence)),
        "```",
    ]


def _confirm(said: Confirmed | None) -> str:
    if said is None:
        return "**Not confirmed yet.**"
    return f"No fault of its own. {said.why}" if said.by == "aside" else f"Confirmed {HOW[said.by]}. {said.why}"


def _first(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return what proves the first finding, as far as it can be told: one conversation, and no message twice."""
    chosen = {each.n: each for each in evidence if each.conversation == evidence[0].conversation}
    return list(chosen.values())[:MAX_MESSAGES]


def _show(evidence: Evidence) -> str:
    arrow = "->" if evidence.sender == "client" else "<-"
    return f"{arrow} {plain(evidence.line, MAX_LETTERS)}" if evidence.line else f"   ({plain(evidence.event, 80)})"


def _settled(subject: Subject, checked: Checked, word: Word) -> CheckReport:
    """Return the report without what was set aside."""
    results = [
        msgspec.structs.replace(each, verdict="not_exercised") if _is_aside(subject, each, word) else each
        for each in checked.report.results
    ]
    return CheckReport(checked.role, results, summarize(results))


def _is_aside(subject: Subject, result: Result, word: Word) -> bool:
    said = word.get((subject.name, result.id))
    return result.verdict in ("fail", "warn") and said is not None and said.by == "aside"
