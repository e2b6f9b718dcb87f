"""Reports about an agent or a client, in formats for people and programs."""

from importlib import import_module
from typing import Literal

from dragoman.check.reports.named_report import NamedReport

Format = Literal["terminal", "json", "junit", "sarif", "markdown", "html"]

FORMATS: dict[Format, str] = {
    "terminal": "short, failures first",
    "json": "one object",
    "junit": "for CI servers",
    "sarif": "for code scanning",
    "markdown": "a table",
    "html": "a page with the messages that prove each failure",
}


def render(subject: NamedReport, form: Format) -> str:
    """Write a report; for a terminal, use `terminal.render`, which knows of colours."""
    return import_module(f"dragoman.check.reports.{form}").render(subject)
