"""Prints the results, errors and log of commands.

They may quote an agent, a server or a file, so control characters are removed.
"""

import logging
import os
import sys

from dragoman.errors import DragomanError
from dragoman.text import clean_text, escape_json

LEVELS = ("debug", "info", "warning", "error", "critical")


def print_json(document: bytes) -> None:
    """Print a JSON document on one line, with control characters escaped."""
    print(escape_json(document.decode()), flush=True)


def print_error(command: str, problem: object) -> None:
    """Print the problem of a command on stderr."""
    print(f"dragoman {command}: {clean_text(str(problem))}", file=sys.stderr)


def start_log(level: str, form: str = logging.BASIC_FORMAT) -> str:
    """Log to stderr, at the level of DRAGOMAN_LOG or else at `level`. Return the level used."""
    level = _read_level(level)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(form))
    logging.basicConfig(handlers=[handler], level=level)
    return level


def _read_level(default: str) -> str:
    """Return the level of DRAGOMAN_LOG. Report an unknown one and return the default."""
    level = os.environ.get("DRAGOMAN_LOG")
    if not level or level.lower() in LEVELS:
        return (level or default).upper()
    print(f"dragoman: DRAGOMAN_LOG is {level!r}; expected one of {', '.join(LEVELS)}", file=sys.stderr)
    return default


class OutputError(DragomanError):
    """The file of `--output` cannot be written."""


def write_output(path: str | None, text: str) -> None:
    """Write a result to a file, or to stdout if the path is None or `-`. Raises OutputError."""
    if path is None or path == "-":
        print(text, end="")
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 -- pathlib takes 3 ms
            file.write(text)
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror}"
        raise OutputError(f"{problem}; name another file with --output") from None


class SafeFormatter(logging.Formatter):
    """Formats log records without control characters."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's text, including its traceback."""
        return clean_text(super().format(record))
