"""What a docstring says about a function and its parameters.

Find books by their author.                the first paragraph: what it does

Args:                                      or Arguments, or Parameters
    author: The family name,
        as it is on the cover.
    limit (int): How many at most.
"""

import inspect
import re
from collections.abc import Mapping
from typing import Any

import msgspec

_SECTION = re.compile(r"(?:Args|Arguments|Parameters):\s*")
_PARAMETER = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


class Documentation(msgspec.Struct, frozen=True):
    """The words for a function and for each parameter that has some."""

    summary: str = ""
    parameters: Mapping[str, str] = {}


def read_docstring(documented: Any) -> Documentation:
    """Read the docstring of a function."""
    text = inspect.getdoc(documented) or ""
    lines = text.splitlines()
    return Documentation(_first_paragraph(lines), _parameters(lines))


def _first_paragraph(lines: list[str]) -> str:
    words: list[str] = []
    for line in lines:
        if not line.strip() or _SECTION.fullmatch(line):
            break
        words.append(line.strip())
    return " ".join(words)


def _parameters(lines: list[str]) -> dict[str, str]:
    section = _section(lines)
    margin = min((_indent(line) for line in section), default=0)
    found: dict[str, str] = {}
    name = ""
    for line in section:
        begun = _PARAMETER.fullmatch(line.strip()) if _indent(line) == margin else None
        if begun is not None:
            name = begun[1]
            found[name] = begun[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _section(lines: list[str]) -> list[str]:
    """Return the lines under the heading, up to the next line that is not indented."""
    start = next((number for number, line in enumerate(lines, 1) if _SECTION.fullmatch(line)), len(lines))
    section: list[str] = []
    for line in lines[start:]:
        if line.strip() and not _indent(line):
            break
        if line.strip():
            section.append(line)
    return section


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
