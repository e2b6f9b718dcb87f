"""One place in a message that does not fit, in words a person can mend the message from.

Values are quoted where that helps and cut short. What lies in `env`, `headers` or `_meta` is never quoted, and
neither is a string where a list or an object belongs: it may hold all of those.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from dragoman.text.excerpt import shorten

SECRET_FIELDS = frozenset({"env", "headers", "_meta"})
MENDED_FIELDS = frozenset({"clientCapabilities", "clientInfo", "_meta"})
"""Fields where an agent, too, takes the default for what is misshapen: they only inform it."""
EMPTY_WHEN_NONE = frozenset({"mcpServers", "args", "env", "headers"})
"""Required arrays that are often left out by those who have nothing to put in."""
MAX_QUOTED = 60


class Place(NamedTuple):
    """Where in a message we are, and how strict to be there."""

    path: str
    lenient: bool
    secret: bool = False

    def key(self, name: str) -> "Place":
        """Return the place of a field."""
        step = f".{name}" if name.isidentifier() else f"[{quote(name)}]"
        return Place(self.path + step, self.lenient or name in MENDED_FIELDS, self.secret or name in SECRET_FIELDS)

    def item(self, index: int) -> "Place":
        """Return the place of an item."""
        return Place(f"{self.path}[{index}]", self.lenient, self.secret)


class Misfit(Exception):  # never leaves the package: it becomes InvalidParams or InvalidResult
    """What is wrong at one place."""

    def __init__(self, path: str, problem: str, *, expected: str | None = None, got: str | None = None) -> None:
        self.path = path
        self.problem = problem
        self.expected = expected
        self.got = got
        super().__init__(f"{path}: {problem}")


class Missing(Misfit):
    """A required field that is not there."""

    def __init__(self, place: Place, field: str, expected: str) -> None:
        self.place = place
        self.field = field
        problem = "required field is missing"
        if field in EMPTY_WHEN_NONE:
            problem += "; send [] when there are none"
        super().__init__(place.key(field).path, problem, expected=expected, got="nothing")


def wrong_type(place: Place, expected: str, value: Any, *, may_quote: bool = True) -> Misfit:
    """Say that a value is of the wrong type or out of range."""
    got = describe(value, may_quote=may_quote and not place.secret)
    problem = f"expected {expected}, got {got}"
    if isinstance(value, dict) and expected == "an array" and place.path.endswith((".env", ".headers")):
        problem += '; send an array of {"name": …, "value": …}'
    return Misfit(place.path, problem, expected=expected, got=got)


def unknown_value(place: Place, noun: str, value: str, allowed: Iterable[str]) -> Misfit:
    """Say that a value is none of those there are."""
    expected = one_of(allowed)
    got = "a string" if place.secret else quote(value)
    return Misfit(place.path, f"unknown {noun} {got}; expected {expected}", expected=expected, got=got)


def one_of(allowed: Iterable[str]) -> str:
    """Return the words for a choice."""
    return "one of " + ", ".join(quote(each) for each in sorted(allowed))


def describe(value: Any, *, may_quote: bool = True) -> str:
    """Return what a JSON value is, with the value itself where it is short and may be told."""
    match value:
        case None:
            return "null"
        case dict():
            return "an object"
        case list():
            return "an array"
        case bool():
            kind, text = "a boolean", "true" if value else "false"
        case str():
            kind, text = "a string", quote(value)
        case _:
            kind, text = "a number", _cut(str(value))
    return f"{kind} ({text})" if may_quote else kind


def quote(text: str) -> str:
    """Return a string in quotes, cut short."""
    return f'"{_cut(text)}"'


def _cut(text: str) -> str:
    return shorten(text, MAX_QUOTED)
