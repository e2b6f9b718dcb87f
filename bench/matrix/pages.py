"""The pages of the matrix: the subjects, the rules that one of them broke, and the messages that prove each breach."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from bench.matrix.checked import Checked, plain
from bench.matrix.confirmed import Confirmed, findings
from bench.matrix.subject import Subject
from dragoman.check.conversation import Side
from dragoman.check.reports.markdown import MARKS
from dragoman.check.results import CheckReport, Evidence, Result, Verdict, count_verdicts
from dragoman.check.rule import VERSIONS, Rule, Version
from dragoman.check.rules import RULES

MAX_MESSAGES = 4
MAX_LETTERS = 260
HOW = {"reading": "Read", "reproducing": "Reproduced", "aside": "Set aside: no fault of its own"}

COMPARED = """\
# Agents and clients compared

`dragoman check` was run against the agents and clients that install with pip and npm. `make matrix` makes this page.
Agents that need an account are asked nothing here; some of them are [judged with prompts](check-matrix-prompts.md).
"""

PROMPTED = """\
# Agents of others, judged with prompts

`dragoman check` was run against agents that need an account, with a model provider of ours on the loopback interface
in its place (`bench/peers/model_provider.py`). It answers each prompt with a sentence, and one of the two prompts with
the call of a tool that runs a command. `make matrix` makes this page, beside [the comparison](check-matrix.md).

The other agents of the registry are judged before prompts only: auggie, cline, factory-droid, github-copilot-cli,
minion-code, pi-acp and qoder open no session without a login, and whether they can be given another provider was not
looked into. kilo and kimi do not start here.
"""

HEAD = """\
A subject is judged in version 1 of the protocol, and in version 2 as well where it speaks that: a line for each.
A rule without an occasion is not judged (`-`): an agent that never asks for permission cannot be judged by how it asks.

| checked | version | date | what it is, and how it was steered | ACP | pass | fail | warn | - |
|---|---|---|---|---|---|---|---|---|"""

FINDINGS = """\

## Findings

Each breach was compared with its clause by hand. *Read* means that the messages and the source that made them were
read; *reproduced* means that the lines were also typed into stdin, without the checker. `->` is a message of the
client, `<-` one of the agent. Of several breaches of a rule the first is shown; long messages are cut."""

Column = tuple[Subject, Checked]
Confirmations = Mapping[tuple[str, str], Confirmed]


def matrix_page(
    title: str, columns: Sequence[Column], missing: Sequence[tuple[Subject, str]], confirmations: Confirmations
) -> str:
    """Return a page about some subjects. It begins with `title`."""
    lines = [title, HEAD]
    for subject, checked in columns:
        settled = _settled(subject, checked, confirmations)
        for version in settled.protocols:
            found = count_verdicts([each for each in settled.results if each.protocol == version])
            lines.append(
                f"| {subject.name} | {checked.version} | {checked.date} | {subject.about} "
                f"| {version} | {found.passed} | {found.fail} | {found.warn} | {found.not_exercised} |"
            )
    lines += [f"| {subject.name} |  |  | {subject.about}; left out: {why} |  |  |  |  |  |" for subject, why in missing]
    roles: tuple[Side, ...] = ("agent", "client")
    for role in [each for each in roles if any(subject.role == each for subject, _ in columns)]:
        for version in VERSIONS:
            lines += _table(role, version, columns, confirmations)
    lines += [FINDINGS, *_findings(columns, confirmations)]
    return "\n".join(lines) + "\n"


def _table(role: Side, version: Version, columns: Sequence[Column], confirmations: Confirmations) -> Iterator[str]:
    """Yield the rules of a role that a subject broke in a version, with one column per subject of that version."""
    # A column is a subject's verdicts without settled findings. Rules that no subject broke are only counted.
    columns = [each for each in columns if each[0].role == role and version in each[1].report.protocols]
    verdicts: list[dict[str, Verdict]] = [
        {
            result.id: result.verdict
            for result in _settled(subject, checked, confirmations).results
            if result.protocol == version
        }
        for subject, checked in columns
    ]
    rules = [rule for rule in RULES.values() if rule.side == role and version in rule.versions]
    broken = [rule for rule in rules if any(each.get(rule.id) in ("fail", "warn", "error") for each in verdicts)]
    yield f"\n## Rules for {role}s that were broken in version {version}\n"
    if not broken:
        yield f"None of {len(rules)} rules, by {', '.join(subject.name for subject, _ in columns)}."
        return
    yield f"No subject broke the other {len(rules) - len(broken)} of {len(rules)} rules.\n"
    yield f"| rule | level | {' | '.join(subject.name for subject, _ in columns)} |"
    yield "|---|---|" + "---|" * len(columns)
    for rule in broken:
        marks = " | ".join(MARKS[each.get(rule.id, "not_exercised")] for each in verdicts)
        yield f"| [{rule.id}](#{rule.id.lower()}) | {rule.level} | {marks} |"


def _findings(columns: Sequence[Column], confirmations: Confirmations) -> Iterator[str]:
    """Yield the findings by rule. Subjects with one cause share the text and the messages of the first of them."""
    found: dict[str, list[tuple[str, Result]]] = {}
    for subject, checked in columns:
        for result in findings(checked):
            found.setdefault(result.id, []).append((subject.name, result))
    for rule in RULES.values():
        if rule.id in found:
            yield from _describe(rule, found[rule.id], confirmations)


def _describe(rule: Rule, found: Sequence[tuple[str, Result]], confirmations: Confirmations) -> Iterator[str]:
    yield f"\n### {rule.id}\n\n[{rule.title}]({rule.url_in(min(result.protocol for _, result in found))})."
    by_cause: dict[tuple[str, Confirmed | None], list[tuple[str, Result]]] = {}
    for name, result in found:
        by_cause.setdefault((result.verdict, confirmations.get((name, result.key))), []).append((name, result))
    for (verdict, cause), same in by_cause.items():
        first = same[0][1]
        yield f"\n{'; '.join(_name(name, result) for name, result in same)}"
        yield f"\n{verdict}: {plain(first.detail, 300)}. {_confirm(cause)}\n\n```text"
        yield from (_show(each) for each in _first(first.evidence))
        yield "```"


def _name(name: str, result: Result) -> str:
    return f"**{name}**" if result.protocol == 1 else f"**{name}** in version {result.protocol}"


def _confirm(cause: Confirmed | None) -> str:
    return "**Not confirmed yet.**" if cause is None else f"{HOW[cause.by]}. {cause.why}"


def _first(evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the messages that prove the first finding: one conversation, without repetitions."""
    chosen = {each.n: each for each in evidence if each.conversation == evidence[0].conversation}
    return list(chosen.values())[:MAX_MESSAGES]


def _show(evidence: Evidence) -> str:
    arrow = "->" if evidence.sender == "client" else "<-"
    return f"{arrow} {plain(evidence.line, MAX_LETTERS)}" if evidence.line else f"   ({plain(evidence.event, 80)})"


def _settled(subject: Subject, checked: Checked, confirmations: Confirmations) -> CheckReport:
    """Return the report without the findings that were set aside."""
    results = [
        msgspec.structs.replace(each, verdict="not_exercised") if _is_aside(subject, each, confirmations) else each
        for each in checked.report.results
    ]
    return CheckReport(checked.role, results, count_verdicts(results))


def _is_aside(subject: Subject, result: Result, confirmations: Confirmations) -> bool:
    said = confirmations.get((subject.name, result.key))
    return result.verdict in ("fail", "warn") and said is not None and said.by == "aside"
