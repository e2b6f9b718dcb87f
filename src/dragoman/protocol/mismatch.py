"""Errors for a field of the wrong type: its path, the expected value and the actual value.

Values are quoted if that helps, and shortened. Values in `env`, `headers` or `_meta` are never quoted. A string in the
place of a list or an object is not quoted either, because it may contain such values.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import inspect

from dragoman.text.excerpt import shorten

SECRET_FIELDS = frozenset({"env", "headers", "_meta"})
INFORMATIONAL_FIELDS = frozenset({"clientCapabilities", "clientInfo", "capabilities", "_meta"})
"""Fields for which even an agent uses the default instead of a malformed value, because they are only informational."""
EMPTY_WHEN_NONE = frozenset({"mcpServers", "args", "env", "headers"})
"""Required arrays that clients often omit if they are empty."""
MAX_QUOTED = 60


class FieldPath(NamedTuple):
    """The path of a field in a message, and how strictly to decode it."""

    path: str
    lenient: bool
    secret: bool = False

    def key(self, name: str) -> "FieldPath":
        """Return the path of a member of this field."""
        step = f".{name}" if name.isidentifier() else f"[{quote(name)}]"
        return FieldPath(
            self.path + step, self.lenient or name in INFORMATIONAL_FIELDS, self.secret or name in SECRET_FIELDS
        )

    def item(self, index: int) -> "FieldPath":
        """Return the path of an item of this field."""
        return FieldPath(f"{self.path}[{index}]", self.lenient, self.secret)


class TypeMismatchError(
    Exception
):  # never leaves the package, which raises InvalidParamsError or InvalidResultError instead
    """A value does not have the type of its field."""

    def __init__(self, path: str, problem: str, *, expected: str | None = None, got: str | None = None) -> None:
        self.path = path
        self.problem = problem
        self.expected = expected
        self.got = got
        super().__init__(path, problem)

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}"  # a hint may be added to the problem later


class MissingFieldError(TypeMismatchError):
    """A required field is missing."""

    def __init__(self, place: FieldPath, field: str, expected: str) -> None:
        self.place = place
        self.field = field
        problem = "required field is missing"
        if field in EMPTY_WHEN_NONE:
            problem += "; send [] when there are none"
        super().__init__(place.key(field).path, problem, expected=expected, got="nothing")


def wrong_type(place: FieldPath, expected: str, value: Any, *, may_quote: bool = True) -> TypeMismatchError:
    """Return the error for a value of the wrong type or out of range."""
    got = describe(value, may_quote=may_quote and not place.secret)
    problem = f"expected {expected}, got {got}"
    if isinstance(value, dict) and expected == "an array" and place.path.endswith((".env", ".headers")):
        problem += '; send an array of {"name": …, "value": …}'
    return TypeMismatchError(place.path, problem, expected=expected, got=got)


def unknown_value(place: FieldPath, noun: str, value: str, allowed: Iterable[str]) -> TypeMismatchError:
    """Return the error for a value that is not one of the allowed values."""
    expected = one_of(allowed)
    got = "a string" if place.secret else quote(value)
    return TypeMismatchError(place.path, f"unknown {noun} {got}; expected {expected}", expected=expected, got=got)


def one_of(allowed: Iterable[str]) -> str:
    """Return the text for a choice, such as `one of "a", "b"`."""
    return "one of " + ", ".join(quote(each) for each in sorted(allowed))


def describe(value: Any, *, may_quote: bool = True) -> str:
    """Return the type of a JSON value, with the value itself if it may be quoted."""
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
    """Return a quoted string, shortened."""
    return f'"{_cut(text)}"'


def _cut(text: str) -> str:
    return shorten(text, MAX_QUOTED)


def expectation(info: inspect.Type) -> str:
    """Return the expectation of a type as text, such as `an integer from 0 to 65535`."""
    match info:
        case inspect.UnionType(types=types):
            return _join(list(dict.fromkeys(expectation(each) for each in types)))
        case inspect.IntType(ge=low, le=high):
            return "an integer" + _range(low, high)
        case inspect.StrType(min_length=shortest) if shortest:
            return "a non-empty string"
        case inspect.LiteralType(values=values):
            return one_of(str(value) for value in values)
        case _:
            return _PLAIN.get(type(info), "an object")


_PLAIN: dict[type[inspect.Type], str] = {
    inspect.NoneType: "null",
    inspect.BoolType: "a boolean",
    inspect.FloatType: "a number",
    inspect.StrType: "a string",
    inspect.ListType: "an array",
    inspect.AnyType: "any value",
}


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return ""
    return f" of {low} or more" if high is None else f" from {low} to {high}"


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " or " + names[-1]
