"""A report in the XML of JUnit: a test case a rule."""

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import Evidence, Result
from dragoman.check.rules import AREAS
from dragoman.text import one_line, visible


def render(subject: NamedReport) -> str:
    """Write a suite; rules that were not exercised and known failures are skipped tests."""
    results = subject.report.results
    known = sum(subject.is_known(result) for result in results)
    summary = subject.report.summary
    name = quoteattr(one_line(subject.name))
    counts = f'tests="{len(results)}" failures="{summary.fail - known}" errors="{summary.error}"'
    skipped = f'skipped="{summary.not_exercised + known}"'  # which Jenkins does not allow on all suites together
    cases = "\n".join(line for result in results for line in _case(result, is_known=subject.is_known(result)))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="dragoman check" {counts}>\n'
        f'<testsuite name={name} {counts} {skipped} time="0">\n{cases}\n</testsuite>\n</testsuites>\n'
    )


def _case(result: Result, *, is_known: bool) -> Iterator[str]:
    area = AREAS.get(result.id.split("-")[1], "rules") if "-" in result.id else "rules"
    name = quoteattr(f"{result.id} {result.title}")
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
    said = f"[{evidence.event}]" if evidence.event else evidence.line
    return f"{evidence.n} {evidence.at_s:.3f} s {evidence.sender}: {one_line(said, 2000)}"


def _text(text: str) -> str:
    return visible(text, lines=True).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
