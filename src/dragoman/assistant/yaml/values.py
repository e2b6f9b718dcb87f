"""YAML read into typed values, so that each problem has its line.

`read_yaml(text, SomeStruct)` reads a text as the struct's annotations say and tells all that is wrong with it at
once: unknown keys with the key that was probably meant, keys given twice, wrong types, numbers out of range. What a
struct itself has against its values together, its `__post_init__` raises as `KeyConflict`. A type that is no struct and
no plain value is made by calling it with the text; a `ValueError` is its refusal. `Meta(extra={"expected": …})` puts
better words to what is expected. Unknown keys are wrong where the struct forbids them, and collected where it does not.

The values of a text may be secrets: none is quoted, except numbers and the choice that was none.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import inspect

from dragoman.assistant.yaml.nodes import (
    KeyConflict,
    YamlError,
    YamlProblem,
    expectation,
    is_scalar,
    join,
    kind,
    line_of,
    listed,
    parse_yaml,
    plain_value,
    printable,
)
from dragoman.text.match import closest

T = TypeVar("T")


class ParsedYaml(msgspec.Struct, Generic[T], frozen=True):
    """A parsed value, the line of every value by its dotted name, and the unknown keys."""

    value: T
    lines: dict[str, int]
    unknown: tuple[str, ...] = ()


def read_yaml(text: str, value_type: type[T]) -> ParsedYaml[T]:
    """Read a text as a value of this type; raises YamlError."""
    return read_node(parse_yaml(text), value_type)


def read_node(root: Any, value_type: type[T]) -> ParsedYaml[T]:
    """Read a node as a value of this type; raises YamlError."""
    reader = _Reader()
    value = reader.value(root, inspect.type_info(value_type), "")
    if reader.problems:
        raise YamlError(reader.problems)
    return ParsedYaml(value, reader.lines, tuple(reader.unknown))


class _Reader:
    """One pass over a text; problems are collected, and a value with a problem in it is never used."""

    def __init__(self) -> None:
        self.problems: list[YamlProblem] = []
        self.lines: dict[str, int] = {}
        self.unknown: list[str] = []

    def value(self, node: Any, info: inspect.Type, name: str) -> Any:
        self.lines[name] = line_of(node)
        fitting = [each for each in _members(info) if _may_hold(each, node)]
        if not fitting:
            return self._complain(node, name, f"expected {expectation(info)}, got {kind(node)}{_quotes(info, node)}")
        match fitting[0]:
            case inspect.StructType() as struct:
                return self._struct(node, struct, name)
            case inspect.DictType(value_type=item):
                return {key: self.value(at, item, join(name, key)) for key, (_, at) in self._keys(node, name).items()}
            case inspect.ListType(item_type=item):
                items = () if node.id == "scalar" else node.value
                return [self.value(at, item, f"{name}[{index}]") for index, at in enumerate(items)]
            case _:
                return self._scalar(node, fitting, name, expectation(info))

    def _struct(self, node: Any, info: inspect.StructType, name: str) -> Any:
        before = len(self.problems)
        given = self._keys(node, name)
        fields = {field.encode_name: field for field in info.fields}
        values: dict[str, Any] = {}
        for key, (key_node, value_node) in given.items():
            if key in fields:
                values[fields[key].name] = self.value(value_node, fields[key].type, join(name, key))
            elif info.forbid_unknown_fields:
                self._complain(key_node, join(name, key), f"unknown key; {_suggest(key, list(fields))}")
            else:
                self.unknown.append(join(name, key))
        for key, field in fields.items():
            if field.required and key not in given:
                self._complain(node, join(name, key), "is missing")
        if len(self.problems) > before:
            return None
        try:
            return info.cls(**values)
        except KeyConflict as misfit:
            at, _ = given.get(misfit.key, (node, node))
            return self._complain(at, join(name, misfit.key), str(misfit))

    def _keys(self, node: Any, name: str) -> Mapping[str, tuple[Any, Any]]:
        keys: dict[str, tuple[Any, Any]] = {}
        for key, value in () if node.id == "scalar" else node.value:
            if key.id != "scalar":
                self._complain(key, name, f"expected a name as key, got {kind(key)}")
            elif key.value in keys:
                self._complain(key, join(name, key.value), "is given twice")
            else:
                keys[key.value] = (key, value)
        return keys

    def _scalar(self, node: Any, fitting: Sequence[inspect.Type], name: str, expected: str) -> Any:
        try:
            value = plain_value(node)
            for info in fitting:
                if isinstance(info, inspect.CustomType):
                    return info.cls(value)
                if _holds(info, value):
                    return float(value) if isinstance(info, inspect.FloatType) else value
        except YamlError as misread:
            return self._complain(node, name, misread.problems[0].text)
        except ValueError as refusal:
            return self._complain(node, name, str(refusal))
        return self._complain(node, name, f"expected {expected}{_given(fitting[0], value)}")

    def _complain(self, node: Any, name: str, text: str) -> None:
        self.problems.append(YamlProblem(line_of(node), f"{printable(name)}: {text}" if name else text))


_TAGS: dict[type[inspect.Type], tuple[str, ...]] = {
    inspect.NoneType: ("null",),
    inspect.BoolType: ("bool",),
    inspect.IntType: ("int",),
    inspect.FloatType: ("int", "float"),
}
_TEXTS = (inspect.StrType, inspect.LiteralType, inspect.CustomType)


def _members(info: inspect.Type) -> list[inspect.Type]:
    if isinstance(info, inspect.Metadata):
        return _members(info.type)
    return [each for one in info.types for each in _members(one)] if isinstance(info, inspect.UnionType) else [info]


def _may_hold(info: inspect.Type, node: Any) -> bool:
    """Whether a node is of the right kind, without a look at its content."""
    match info:
        # A key whose own keys are all commented out has no value: that says nothing, and is no mistake.
        case inspect.StructType(fields=fields):
            return node.id == "mapping" or (is_scalar(node, "null") and not any(field.required for field in fields))
        case inspect.DictType():
            return node.id == "mapping" or is_scalar(node, "null")
        case inspect.ListType():
            return node.id == "sequence" or is_scalar(node, "null")
        case _:
            return is_scalar(node, *_TAGS.get(type(info), ("str",)))


def _holds(info: inspect.Type, value: Any) -> bool:
    match info:
        case inspect.StrType(min_length=shortest, pattern=pattern):
            return len(value) >= (shortest or 0) and (pattern is None or re.fullmatch(pattern, value) is not None)
        case inspect.IntType() | inspect.FloatType():
            return _in_range(info, value)
        case inspect.LiteralType(values=values):
            return value in values
        case _:
            return True


def _in_range(info: inspect.IntType | inspect.FloatType, value: float) -> bool:
    finite = -sys.float_info.max <= value <= sys.float_info.max
    above = (info.gt is None or value > info.gt) and (info.ge is None or value >= info.ge)
    return finite and above and (info.lt is None or value < info.lt) and (info.le is None or value <= info.le)


def _quotes(info: inspect.Type, node: Any) -> str:
    wants_text = any(isinstance(each, _TEXTS) for each in _members(info))
    return "; put it in quotes" if wants_text and node.id == "scalar" and not is_scalar(node, "null") else ""


def _given(info: inspect.Type, value: Any) -> str:
    match info:
        case inspect.LiteralType(values=values):
            close = closest(value, [str(each) for each in values])
            return f", got {printable(value)}" + (f"; did you mean {close}?" if close else "")
        case inspect.IntType() | inspect.FloatType():
            return f", got {printable(str(value))}"
        case _:
            return ""


def _suggest(key: str, known: Sequence[str]) -> str:
    close = closest(key, known)
    return f"did you mean {close}?" if close else f"expected one of {listed(known)}"
