"""Reports about an agent or a client, in formats for readers and programs."""

from importlib import import_module

from dragoman.check.reports.named_report import NamedReport

FORMATS: dict[str, str] = {
    "text": "short, failures first",
    "json": "one object",
    "junit": "for CI servers",
    "sarif": "for code scanning",
    "markdown": "a table",
    "html": "a page with the messages that prove each failure",
}


def render(subject: NamedReport, form: str) -> str:
    """Render a report. For a terminal, use `text.render`, which supports colours."""
    return import_module(f"dragoman.check.reports.{form}").render(subject)
