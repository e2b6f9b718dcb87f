"""YAML as nodes, which know their lines; made safely from the text of a stranger. And the words for nodes and types.

Nesting is counted before nodes are made: PyYAML makes them by recursion in C, and a few thousand brackets would end
the process. The text may hold secrets, so no problem quotes it.
"""

import re
from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import inspect

from dragoman.errors import DragomanError
from dragoman.text import one_line

MAX_NAME_LENGTH = 80
"""A name is shown so that it can be found; a longer one was not meant to be one."""


def kind(node: Any) -> str:
    """Return the word for a node's kind."""
    if node.id == "scalar":
        return _SCALARS.get(node.tag.rpartition(":")[2], "something else")
    return {"sequence": "a list", "mapping": "a mapping"}[node.id]


def expectation(info: inspect.Type) -> str:
    """Return the words for a type, such as `a whole number of at least 1`."""
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


MAX_NESTING = 64
"""Deeper than any file that a person writes, and far from the end of a C stack."""

_NOT_WHAT_THE_TAG_SAYS = (ValueError, KeyError, AttributeError, TypeError)
"""The errors of PyYAML's constructors for `!!int x`, `!!bool x`, `!!timestamp x` and their like."""

_ODD = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that YAML allows in no text."""


class YamlProblem(msgspec.Struct, frozen=True, order=True):
    """One thing that is wrong, and where."""

    line: int
    text: str


class YamlError(DragomanError):
    """A YAML text is wrong: all its problems."""

    def __init__(self, problems: Iterable[YamlProblem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"line {problem.line}: {problem.text}" for problem in self.problems))


class KeyConflict(ValueError):
    """Raised by the `__post_init__` of a struct that is read from YAML: this key does not go with the others."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        super().__init__(text)


def parse_yaml(text: str) -> Any:
    """Return the root node of a text with at most one document: null for an empty one; raises YamlError."""
    import yaml

    try:
        _check_nesting(text)
        root = _loader()(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError([YamlProblem(mark.line + 1 if mark else 1, f"not YAML: {_unquoted(error.problem)}")]) from None
    except yaml.YAMLError:
        raise YamlError([YamlProblem(_odd_line(text), "not YAML: a character that no text may hold")]) from None
    if root is not None:
        return root
    start = yaml.Mark("", 0, 0, 0, None, 0)
    return yaml.ScalarNode("tag:yaml.org,2002:null", "", start, start)


def plain_value(node: Any) -> Any:
    """Return the plain value of a node, and of those in it; raises YamlError."""
    import yaml

    loader = _loader()("")
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise YamlError([YamlProblem(line_of(node), f"not YAML: {_unquoted(error.problem)}")]) from None
    except _NOT_WHAT_THE_TAG_SAYS:
        raise YamlError([YamlProblem(line_of(node), "the value is not what its tag or form says")]) from None
    finally:
        loader.dispose()


def line_of(node: Any) -> int:
    """Return the line that a node begins on, from 1."""
    return node.start_mark.line + 1


def is_scalar(node: Any, *tags: str) -> bool:
    """Say whether a node is a scalar of one of these tags, such as `int`."""
    return node.id == "scalar" and node.tag in [f"tag:yaml.org,2002:{tag}" for tag in tags]


def _loader() -> Any:
    import yaml

    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _check_nesting(text: str) -> None:
    import yaml

    depth = 0
    for event in cast("Iterable[yaml.Event]", cast("Any", yaml).parse(text, Loader=_loader())):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_NESTING:
                raise YamlError([YamlProblem(line_of(event), f"nested more than {MAX_NESTING} deep")])
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _odd_line(text: str) -> int:
    odd = re.search(_ODD, text)
    return text.count("\n", 0, odd.start()) + 1 if odd else 1


def _unquoted(problem: Any) -> str:
    """Drop the part of the text that PyYAML quotes."""
    return re.sub(r" ?(['\"]).*\1", "", str(problem), flags=re.DOTALL)
