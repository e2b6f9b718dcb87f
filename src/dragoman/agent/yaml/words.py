"""What a YAML node is, and what a type expects of one, in words for whoever wrote the file."""

from collections.abc import Iterable
from typing import Any, cast

from msgspec import inspect

from dragoman.text import one_line

MAX_NAME_LENGTH = 80
"""A name is shown so that it can be found; a longer one was not meant to be one."""


def kind(node: Any) -> str:
    """Say what a node is."""
    if node.id == "scalar":
        return _SCALARS.get(node.tag.rpartition(":")[2], "something else")
    return {"sequence": "a list", "mapping": "a mapping"}[node.id]


def expectation(info: inspect.Type) -> str:
    """Say what a type expects, such as `a whole number of at least 1`."""
    if isinstance(info, inspect.Metadata):
        extra = cast("dict[str, str]", info.extra or {})
        return extra.get("expected") or expectation(info.type)
    match info:
        case inspect.UnionType(types=types):
            return " or ".join(expectation(each) for each in types)
        case inspect.IntType() | inspect.FloatType():
            return ("a whole number" if isinstance(info, inspect.IntType) else "a number") + _range(info)
        case inspect.LiteralType(values=values):
            return f"one of {listed(str(value) for value in values)}"
        case inspect.StructType(fields=fields):
            return f"a mapping with {listed(field.encode_name for field in fields)}"
        case _:
            return _PLAIN.get(type(info), "text")


def join(name: str, key: str) -> str:
    """Return the dotted name of a key inside another."""
    return f"{name}.{key}" if name else key


def listed(words: Iterable[str]) -> str:
    """Return words as a list in a sentence."""
    return ", ".join(words)


def printable(text: str) -> str:
    """Return a text in one line, safe to show and cut to the length of a name."""
    return one_line(text, MAX_NAME_LENGTH)


_SCALARS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "timestamp": "a date",
}
_PLAIN: dict[type[inspect.Type], str] = {
    inspect.NoneType: "null",
    inspect.BoolType: "true or false",
    inspect.ListType: "a list",
    inspect.DictType: "a mapping",
}


def _range(info: inspect.IntType | inspect.FloatType) -> str:
    if info.ge is not None and info.le is not None:
        return f" from {info.ge:g} to {info.le:g}"
    if info.ge is not None:
        return f" of at least {info.ge:g}"
    return f" above {info.gt:g}" if info.gt is not None else ""
