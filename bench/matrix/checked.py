"""The report about a subject, stored between runs so that one column can be updated."""

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench import commands
from dragoman.check.conversation import Side
from dragoman.check.results import CheckReport

KEPT = commands.ROOT / ".cache" / "matrix"
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+")


class Checked(msgspec.Struct, frozen=True):
    """A report and its subject."""

    name: str
    role: Side
    version: str
    date: str
    took_s: float
    report: CheckReport


def keep(checked: Checked) -> None:
    """Store the report for the pages."""
    KEPT.mkdir(parents=True, exist_ok=True)
    _file(checked.name).write_bytes(msgspec.json.encode(checked))


def recall(name: str) -> Checked | None:
    """Return the stored report about a subject, or None."""
    file = _file(name)
    return msgspec.json.decode(file.read_bytes(), type=Checked) if file.exists() else None


def today() -> str:
    """Return the date in the format of the pages."""
    return datetime.now(UTC).date().isoformat()


def plain(line: str, limit: int) -> str:
    """Return a message without paths of this machine, cut to a length."""
    line = line.replace(str(commands.ROOT), "/dragoman").replace(str(Path.home()), "/home")
    line = _TEMPORARY.sub("/work", line)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _file(name: str) -> Path:
    return KEPT / (re.sub(r"\W+", "-", name) + ".json")
