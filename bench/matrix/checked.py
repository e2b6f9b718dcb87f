"""The report about a subject, kept between runs so that one column can be made again."""

import re
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench import commands
from dragoman.check.results import CheckReport
from dragoman.check.rule import Role

KEPT = commands.ROOT / ".cache" / "matrix"
_TEMPORARY = re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+")


class Checked(msgspec.Struct, frozen=True):
    """A report and its subject."""

    name: str
    role: Role
    version: str
    date: str
    took_s: float
    report: CheckReport


def keep(checked: Checked) -> None:
    """Keep it for the pages."""
    KEPT.mkdir(parents=True, exist_ok=True)
    _file(checked.name).write_bytes(msgspec.json.encode(checked))


def recall(name: str) -> Checked | None:
    """Return the kept report about a subject, if there is one."""
    file = _file(name)
    return msgspec.json.decode(file.read_bytes(), type=Checked) if file.exists() else None


def today() -> str:
    """Return the date, as the pages have it."""
    return datetime.now(UTC).date().isoformat()


def plain(line: str, limit: int) -> str:
    """Return a message without the places of this machine, cut to a length."""
    line = line.replace(str(commands.ROOT), "/dragoman").replace(str(Path.home()), "/home")
    line = _TEMPORARY.sub("/work", line)
    return line if len(line) <= limit else f"{line[: limit - 1]}…"


def _file(name: str) -> Path:
    return KEPT / (re.sub(r"\W+", "-", name) + ".json")
