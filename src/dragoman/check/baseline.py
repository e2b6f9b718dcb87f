"""Known failures. A file lists them, reports show them, and they do not break a build.

    {"dragoman-baseline": 1, "known": {"ACP-NEW-003": "the agent answers with the wrong code"}}

A failure in version 2 of the protocol is named `ACP-NEW-003@2`. The text after each rule is for the reader. It is the
finding when the file was written, or the reason why the failure is accepted.
"""

from pathlib import Path

import msgspec

from dragoman.check.reports.named_report import as_json
from dragoman.check.results import CheckReport, count_verdicts
from dragoman.errors import DragomanError

VERSION = 1


class BaselineError(DragomanError):
    """The file of known failures cannot be read or written, or is not a baseline."""


class _File(msgspec.Struct, rename={"version": "dragoman-baseline"}):
    version: int
    known: dict[str, str]


def read_baseline(path: str) -> dict[str, str]:
    """Return the known failures by rule. Raises BaselineError."""
    try:
        read = msgspec.json.decode(Path(path).read_bytes(), type=_File)
    except OSError as error:
        raise BaselineError(f"the baseline {path} cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BaselineError(
            f"{path} is not a baseline: {error}; write one with --baseline {path} --write-baseline"
        ) from None
    if read.version != VERSION:
        raise BaselineError(f"the baseline {path} has format {read.version}, and this dragoman reads {VERSION}")
    return read.known


def write_baseline(path: str, report: CheckReport) -> int:
    """Write the failures of a report and return their number. Raises BaselineError."""
    known = {result.key: result.detail for result in report.results if result.verdict == "fail"}
    try:
        Path(path).write_text(as_json(_File(VERSION, known)), encoding="utf-8")
    except OSError as error:
        raise BaselineError(f"the baseline {path} cannot be written: {error.strerror}") from None
    return len(known)


def without_known(report: CheckReport, known: frozenset[str]) -> CheckReport:
    """Return the report without the known failures."""
    results = [result for result in report.results if result.verdict != "fail" or result.key not in known]
    return CheckReport(report.side, results, count_verdicts(results))


def fixed(report: CheckReport, known: frozenset[str]) -> list[str]:
    """Return the rules that are listed as known failures but pass."""
    return [result.key for result in report.results if result.verdict == "pass" and result.key in known]
