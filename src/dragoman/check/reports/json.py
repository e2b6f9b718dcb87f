"""A report as one JSON object, and back."""

from pathlib import Path
from typing import Any

import msgspec

from dragoman.check.reports.named_report import NamedReport, as_json
from dragoman.check.results import CheckReport, Evidence, Result, Verdict, VerdictCounts
from dragoman.check.rule import Level, Version
from dragoman.errors import DragomanError


class ReportError(DragomanError):
    """A file is not a report of the checker."""


class _Result(msgspec.Struct):
    id: str
    title: str
    level: Level
    verdict: Verdict
    clause: str
    detail: str
    evidence: list[Evidence]
    protocol: Version = 1


class _Report(msgspec.Struct):
    results: list[_Result]
    summary: VerdictCounts


def render(subject: NamedReport) -> str:
    """Render the results and their counts."""
    results = [_as_object(result) for result in subject.report.results]
    return as_json({"results": results, "summary": subject.report.summary})


def read(path: str) -> CheckReport:
    """Read a report that `render` wrote. Raises ReportError."""
    try:
        read = msgspec.json.decode(Path(path).read_bytes(), type=_Report)
    except OSError as error:
        raise ReportError(f"{path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ReportError(f"{path} is not a report written by --format json: {error}") from None
    results = [Result(**{name: getattr(each, name) for name in _Result.__struct_fields__}) for each in read.results]
    return CheckReport("agent", results, read.summary)


def _as_object(result: Result) -> dict[str, Any]:
    return {name: getattr(result, name) for name in _Result.__struct_fields__}
