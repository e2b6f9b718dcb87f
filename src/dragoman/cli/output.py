"""Results, errors and the log of commands. All may quote an agent, a server or a file, and are made safe to show."""

import logging
import os
import sys

from dragoman.errors import DragomanError
from dragoman.text import clean_text, escape_json

LEVELS = ("debug", "info", "warning", "error", "critical")


def print_json(document: bytes) -> None:
    """Print a JSON document in one line: the same value, with nothing in it that a terminal obeys."""
    print(escape_json(document.decode()), flush=True)


def complain(command: str, problem: object) -> None:
    """Print the problem of a command on stderr."""
    print(f"dragoman {command}: {clean_text(str(problem))}", file=sys.stderr)


def start_log(level: str, form: str = logging.BASIC_FORMAT) -> str:
    """Log to stderr from the level of DRAGOMAN_LOG on, or from `level` without it; returns the level."""
    level = _read_level(level)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(SafeFormatter(form))
    logging.basicConfig(handlers=[handler], level=level)
    return level


def _read_level(default: str) -> str:
    """Return the level of the environment; an unknown one is reported, and the default holds."""
    given = os.environ.get("DRAGOMAN_LOG")
    if not given or given.lower() in LEVELS:
        return (given or default).upper()
    print(f"dragoman: DRAGOMAN_LOG is {given!r}; expected one of {', '.join(LEVELS)}", file=sys.stderr)
    return default


class OutputNotWritten(DragomanError):
    """The file that `--output` names cannot be written."""


def write_output(path: str | None, text: str) -> None:
    """Write a result to the file that `--output` names; to stdout without one, or for `-`. Raises OutputNotWritten."""
    if path is None or path == "-":
        print(text, end="")
        return
    try:
        with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:  # noqa: PTH123 -- pathlib takes 3 ms
            file.write(text)
    except OSError as error:
        problem = f"{path} cannot be written: {error.strerror}"
        raise OutputNotWritten(f"{problem}; name another file with --output") from None


class SafeFormatter(logging.Formatter):
    """Makes lines of a log that a terminal only prints."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record, with its traceback."""
        return clean_text(super().format(record))
