"""Taking fields out of JSON objects that may have any shape."""

from typing import cast

import msgspec

from dragoman.check.judge.message import Json, Object

EMPTY: Object = {}


def text(value: Object, name: str) -> str | None:
    """Return a field that is a string."""
    field = value.get(name)
    return field if isinstance(field, str) else None


def number(value: Object, name: str) -> float | None:
    """Return a field that is a number."""
    field = value.get(name)
    return field if isinstance(field, int | float) and not isinstance(field, bool) else None


def part(value: Object, name: str) -> Object:
    """Return a field that is an object, or an empty one."""
    field = value.get(name)
    return cast("Object", field) if isinstance(field, dict) else EMPTY


def parts(value: Object, name: str) -> list[Object]:
    """Return the objects in a field that is an array."""
    return [each for each in items(value, name) if isinstance(each, dict)]


def items(value: Object, name: str) -> list[Json]:
    """Return a field that is an array, or an empty one."""
    field = value.get(name)
    return cast("list[Json]", field) if isinstance(field, list) else []


def texts(value: Object, name: str) -> list[str]:
    """Return the strings in a field that is an array."""
    return [each for each in items(value, name) if isinstance(each, str)]


def offered(capabilities: Object, path: str) -> bool:
    """Tell whether a capability is there: `true`, or an object, be it empty."""
    *above, name = path.split(".")
    for each in above:
        capabilities = part(capabilities, each)
    value = capabilities.get(name)
    return value is not None and value is not False


def is_absolute(path: str) -> bool:
    """Tell whether a path is absolute on any system."""
    return path.startswith(("/", "\\\\")) or (path[1:2] == ":" and path[2:3] in ("/", "\\") and path[0].isalpha())


def decode_object(line: bytes) -> Object | None:
    """Return what a line holds, if it is a JSON object."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return cast("Object", value) if isinstance(value, dict) else None
