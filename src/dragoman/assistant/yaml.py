"""Hand-written YAML, parsed into nodes that know their lines, and into typed values whose problems have a line.

Nodes are created safely from untrusted text. The nesting is checked first, because PyYAML recurses in C, and a few
thousand brackets would crash the process.

`read_yaml(text, SomeStruct)` reads a text as the struct's annotations say. It reports all problems together: unknown
keys with the closest known key, duplicate keys, wrong types and numbers out of range. If the values of a struct do not
fit together, its `__post_init__` raises `KeyConflictError`. A type that is neither a struct nor a plain value is called
with the text, and its `ValueError` is the problem. `Meta(extra={"expected": …})` replaces the description of the
expected value. Unknown keys are errors if the struct forbids them, and are collected otherwise.

The text may contain secrets. So no problem quotes it, except for numbers and an invalid choice.
"""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import inspect

from dragoman.errors import DragomanError
from dragoman.text import one_line
from dragoman.text.match import closest

MAX_NAME_LENGTH = 80
"""Names are shown so that they can be found. A longer text is not a name."""


def kind(node: Any) -> str:
    """Return the word for a node's kind."""
    if node.id == "scalar":
        return _SCALARS.get(node.tag.rpartition(":")[2], "something else")
    return {"sequence": "a list", "mapping": "a mapping"}[node.id]


def expectation(info: inspect.Type) -> str:
    """Return the description of a type, such as `a whole number of at least 1`."""
    if isinstance(info, inspect.Metadata):
        extra = cast("dict[str, str]", info.extra or {})
        return extra.get("expected") or expectation(info.type)
    # The words appear in error messages, so they describe a type as the user of a YAML file sees it.
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
    """Return the dotted name of a nested key."""
    return f"{name}.{key}" if name else key


def listed(names: Iterable[str]) -> str:
    """Return words as a list for a sentence."""
    return ", ".join(names)


def printable(text: str) -> str:
    """Return a text on one line, safe to show and cut to the length of a name."""
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
"""Deeper than any hand-written file, and far from the limit of a C stack."""

_TAG_ERRORS = (ValueError, KeyError, AttributeError, TypeError)
"""The errors of PyYAML's constructors for `!!int x`, `!!bool x`, `!!timestamp x` and similar."""

_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
"""Characters that YAML allows nowhere."""


class YamlProblem(msgspec.Struct, frozen=True, order=True):
    """A problem and its line."""

    line: int
    text: str


class YamlError(DragomanError):
    """A YAML text is invalid. Lists all problems."""

    def __init__(self, problems: Iterable[YamlProblem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(f"line {problem.line}: {problem.text}" for problem in self.problems))


class KeyConflictError(ValueError):
    """A key does not fit the others. Raised by the `__post_init__` of a struct that is read from YAML."""

    def __init__(self, key: str, text: str) -> None:
        self.key = key
        super().__init__(text)


def parse_yaml(text: str) -> Any:
    """Return the root node of a text with at most one document, or a null node for an empty text. Raises YamlError."""
    import yaml

    try:
        _check_nesting(text)
        root = _loader()(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        raise YamlError([_explain_syntax(error, text)]) from None
    except yaml.YAMLError:
        raise YamlError(
            [YamlProblem(_forbidden_line(text), "not YAML: it contains a character that is not allowed")]
        ) from None
    if root is not None:
        return root
    start = yaml.Mark("", 0, 0, 0, None, 0)
    return yaml.ScalarNode("tag:yaml.org,2002:null", "", start, start)


def plain_value(node: Any) -> Any:
    """Return the plain value of a node and its children. Raises YamlError."""
    import yaml

    loader = _loader()("")
    try:
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise YamlError([YamlProblem(line_of(node), f"not YAML: {_sentence(error)}")]) from None
    except _TAG_ERRORS:
        raise YamlError([YamlProblem(line_of(node), "the value does not match its tag or form")]) from None
    finally:
        loader.dispose()


def line_of(node: Any) -> int:
    """Return the line of a node, counted from 1."""
    return node.start_mark.line + 1


def is_scalar(node: Any, *tags: str) -> bool:
    """Return whether a node is a scalar with one of these tags, such as `int`."""
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


def _forbidden_line(text: str) -> int:
    found = re.search(_FORBIDDEN, text)
    return text.count("\n", 0, found.start()) + 1 if found else 1


_NOT_CLOSED = (
    (r"flow sequence", "the list that begins with [ on this line has no comma between its items, or no closing ]"),
    (r"flow mapping", "the mapping that begins with { on this line has no comma between its keys, or no closing }"),
    (r"quoted scalar.*end of stream", "the quoted text that begins on this line has no closing quote"),
)
"""Messages for mistakes that begin on one line but are noticed on a later one. They name the first line."""
_TAB = "this line is indented with a tab; use spaces"
_SENTENCES = (
    (r"mapping values", 'a ":" is not expected here; check the indentation, or put the value in quotes'),
    (r"tab character", _TAB),
    (r"cannot start any token", "a value cannot begin with this character; put it in quotes"),
    (r"undefined alias", "this alias has no anchor; put a value that begins with * in quotes"),
    (r"escape", "an escape that begins with a backslash is unknown; use single quotes or double the backslash"),
    (r"another document", "a second document begins here, but a file may have only one"),
    (r"flow node", "a value or a closing bracket is expected here"),
    (r"node content", "a value is expected here; put a value that begins with a special character in quotes"),
    (r"block sequence entries", "a list cannot begin here; write each item on a line of its own"),
    (
        r"block (?:mapping|collection)|document start",
        "this line does not continue the lines before it; check its indentation",
    ),
    (r"constructor for the tag", "its tag is not supported; remove the word that begins with !"),
)


def _explain_syntax(error: Any, text: str) -> YamlProblem:
    """Return the line and a full sentence for an error of PyYAML, whose own message quotes the text."""
    sentence = next((words for sign, words in _NOT_CLOSED if re.search(sign, _message_of(error))), None)
    mark = (sentence and error.context_mark) or error.problem_mark or error.context_mark
    lines = text.splitlines() or [""]
    line = min(mark.line, len(lines) - 1) if mark else 0
    if sentence is None and mark and lines[line][mark.column : mark.column + 1] == "\t":
        sentence = _TAB
    return YamlProblem(line + 1, f"not YAML: {sentence or _sentence(error)}")


def _sentence(error: Any) -> str:
    text = _message_of(error)
    return next((sentence for sign, sentence in _SENTENCES if re.search(sign, text)), "the syntax is not valid here")


def _message_of(error: Any) -> str:
    return f"{error.context or ''} {error.problem or ''}"


T = TypeVar("T")


class ParsedYaml(msgspec.Struct, Generic[T], frozen=True):
    """A parsed value, the line of each value by its dotted name, and the unknown keys."""

    value: T
    lines: dict[str, int]
    unknown: tuple[str, ...] = ()


def read_yaml(text: str, value_type: type[T]) -> ParsedYaml[T]:
    """Read a text as a value of this type. Raises YamlError."""
    return read_node(parse_yaml(text), value_type)


def read_node(root: Any, value_type: type[T]) -> ParsedYaml[T]:
    """Read a node as a value of this type. Raises YamlError."""
    reader = _Reader()
    value = reader.value(root, inspect.type_info(value_type), "")
    if reader.problems:
        raise YamlError(reader.problems)
    return ParsedYaml(value, reader.lines, tuple(reader.unknown))


class _Reader:
    """Reads one text and collects its problems. A value with a problem is never used."""

    def __init__(self) -> None:
        self.problems: list[YamlProblem] = []
        self.lines: dict[str, int] = {}
        self.unknown: list[str] = []

    def value(self, node: Any, info: inspect.Type, name: str) -> Any:
        # A union has several members. The kind of the node selects the one to read it as.
        self.lines[name] = line_of(node)
        fitting = [each for each in _members(info) if _may_hold(each, node)]
        if not fitting:
            return self._add_problem(node, name, f"expected {expectation(info)}, got {kind(node)}{_quotes(info, node)}")
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
        # Read all values before building the struct, so that every problem is reported. The struct itself is built only
        # without problems, because its `__post_init__` compares the values.
        before = len(self.problems)
        nodes = self._keys(node, name)
        fields = {field.encode_name: field for field in info.fields}
        values: dict[str, Any] = {}
        for key, (key_node, value_node) in nodes.items():
            if key in fields:
                values[fields[key].name] = self.value(value_node, fields[key].type, join(name, key))
            elif info.forbid_unknown_fields:
                self._add_problem(key_node, join(name, key), f"unknown key; {_suggest(key, list(fields))}")
            else:
                self.unknown.append(join(name, key))
        for key, field in fields.items():
            if field.required and key not in nodes:
                self._add_problem(node, join(name, key), "is missing")
        if len(self.problems) > before:
            return None
        try:
            return info.cls(**values)
        except KeyConflictError as misfit:
            at, _ = nodes.get(misfit.key, (node, node))
            return self._add_problem(at, join(name, misfit.key), str(misfit))

    def _keys(self, node: Any, name: str) -> Mapping[str, tuple[Any, Any]]:
        keys: dict[str, tuple[Any, Any]] = {}
        for key, value in () if node.id == "scalar" else node.value:
            if key.id != "scalar":
                self._add_problem(key, name, f"expected a name as key, got {kind(key)}")
            elif key.value in keys:
                self._add_problem(key, join(name, key.value), "is given twice")
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
            return self._add_problem(node, name, misread.problems[0].text)
        except ValueError as refusal:
            return self._add_problem(node, name, str(refusal))
        return self._add_problem(node, name, f"expected {expected}{_got(fitting[0], value)}")

    def _add_problem(self, node: Any, name: str, text: str) -> None:
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
    """Return whether a node has the right kind, regardless of its content."""
    match info:
        # A key whose nested keys are all commented out has no value. This is not a mistake.
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


def _got(info: inspect.Type, value: Any) -> str:
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
