"""A report as JUnit XML with one test case per rule."""

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import Evidence, Result
from dragoman.check.rule import Version
from dragoman.check.rules import AREAS
from dragoman.text import one_line, visible


def render(subject: NamedReport) -> str:
    """Render a suite for each protocol version. Rules not exercised and known failures are skipped tests."""
    report = subject.report
    suites = "\n".join(_suite(subject, version) for version in report.protocols or [1])
    counts = _count(subject, report.results)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="dragoman check" {counts}>\n'
        f"{suites}\n</testsuites>\n"
    )


def _suite(subject: NamedReport, version: Version) -> str:
    results = [result for result in subject.report.results if result.protocol == version]
    name = one_line(subject.name) + ("" if version == 1 else f" (version {version})")
    known = sum(subject.is_known(result) for result in results)
    skipped = sum(result.verdict == "not_exercised" for result in results) + known
    cases = "\n".join(line for result in results for line in _case(result, is_known=subject.is_known(result)))
    # Jenkins does not allow `skipped` on the enclosing `testsuites`.
    counts = f'{_count(subject, results)} skipped="{skipped}" time="0"'
    return f"<testsuite name={quoteattr(name)} {counts}>\n{cases}\n</testsuite>"


def _count(subject: NamedReport, results: list[Result]) -> str:
    failed = sum(result.verdict == "fail" and not subject.is_known(result) for result in results)
    errors = sum(result.verdict == "error" for result in results)
    return f'tests="{len(results)}" failures="{failed}" errors="{errors}"'


def _case(result: Result, *, is_known: bool) -> Iterator[str]:
    area = AREAS.get(result.id.split("-")[1], "rules") if "-" in result.id else "rules"
    name = quoteattr(f"{result.key} {result.title}")
    yield f'<testcase classname={quoteattr(area)} name={name} time="0">'
    message = quoteattr(one_line(result.detail))
    match result.verdict:
        case "fail" if is_known:
            yield f"<skipped message={quoteattr(f'known: {one_line(result.detail)}')}/>"
        case "fail":
            yield f'<failure type="{result.level}" message={message}>{_body(result)}</failure>'
        case "error":
            yield f'<error type="checker" message={message}/>'
        case "not_exercised":
            yield f"<skipped message={message}/>"
        case "warn":
            yield f"<system-out>{_text(f'warning: {result.detail}')}\n{_body(result)}</system-out>"
        case "pass":
            pass
    yield "</testcase>"


def _body(result: Result) -> str:
    lines = [f"fix: {result.fix}", f"clause: {result.url or result.clause}", *map(_line, result.evidence)]
    return _text("\n".join(lines))


def _line(evidence: Evidence) -> str:
    line = f"[{evidence.event}]" if evidence.event else evidence.line
    return f"{evidence.n} {evidence.at_s:.3f} s {evidence.sender}: {one_line(line, 2000)}"


def _text(text: str) -> str:
    return visible(text, lines=True).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
