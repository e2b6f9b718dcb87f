"""How `dragoman check` hands over its report, and with which exit code."""

import argparse
import os
import shutil
import sys
from pathlib import Path

from dragoman.check.baseline import mended, read_baseline, without_known, write_baseline
from dragoman.check.reports import render, terminal
from dragoman.check.reports.json import read
from dragoman.check.reports.markdown import matrix
from dragoman.check.reports.named_report import NamedReport
from dragoman.check.results import CheckReport
from dragoman.errors import DragomanError

FAILED_CHECK = 2


class NotWritten(DragomanError):
    """The file that was named cannot be written."""


class BadColumn(DragomanError):
    """A report for the matrix was not named as it should be."""


def deliver(options: argparse.Namespace, name: str, report: CheckReport) -> int:
    """Write a report as was asked, and return the exit code. Raises NotWritten, BaselineUnusable."""
    known = _known(options, report)
    subject = NamedReport(name, report, known)
    _write(options.output, _render(subject, options))
    for rule in mended(report, known):
        print(f"dragoman check: {rule} passes now; take it out of {options.baseline}", file=sys.stderr)
    return without_known(report, known).exit_code(options.level)


def deliver_matrix(options: argparse.Namespace) -> int:
    """Write reports side by side. Raises NotWritten, ReportUnreadable, BadColumn."""
    subjects: list[NamedReport] = []
    for given in options.reports:
        name, equals, path = given.partition("=")
        if not equals or not name or not path:
            raise BadColumn(f"{given!r} is no column; say NAME=FILE, with a report that --format json wrote")
        subjects.append(NamedReport(name, read(path)))
    _write(options.output, matrix(subjects))
    return 0


def _known(options: argparse.Namespace, report: CheckReport) -> frozenset[str]:
    if options.baseline is None:
        if options.write_baseline:
            raise NotWritten("--write-baseline needs to know where; say --baseline FILE too")
        return frozenset()
    if options.write_baseline:
        count = write_baseline(options.baseline, report)
        print(f"dragoman check: {options.baseline} has {count} known failures now", file=sys.stderr)
    return frozenset(read_baseline(options.baseline))


def _render(subject: NamedReport, options: argparse.Namespace) -> str:
    if options.format != "text":
        return render(subject, options.format)
    is_terminal = options.output is None and sys.stdout.isatty()
    return terminal.render(
        subject,
        width=shutil.get_terminal_size().columns if is_terminal else 120,
        colours=is_terminal and not os.environ.get("NO_COLOR"),
        verbose=options.verbose,
    )


def _write(path: str | None, text: str) -> None:
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        Path(path).write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise NotWritten(f"{path} cannot be written: {error.strerror}; name another file with --output") from None
