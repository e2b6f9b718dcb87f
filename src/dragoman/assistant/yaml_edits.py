"""Adds and removes entries of a mapping in a YAML text without changing any other byte.

The text is parsed into nodes, which know their positions, and edited at these positions. YAML has more forms than can
be foreseen, so each function yields several texts, the best first. The caller uses the first that parses to the
intended value. `remove` removes exactly the bytes that `add` inserted. To know whether `add` created the key, `add`
marks it with a comment, or in flow style with a blank that nothing else puts there. Only an explicit null, which an
entry must replace, is not restored.

New entries are written as a user would write them: in block style, or on one line that is also valid JSON.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.assistant.yaml import is_scalar, parse_yaml, plain_value

_WORD = re.compile(r"-{0,2}[A-Za-z_./][A-Za-z0-9_./@+-]*")
_ADDRESS = re.compile(r"(?:env|https?)://[A-Za-z0-9_./-]+")
_ESCAPED = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def render_block(key: str, value: Any, indent: int, step: int) -> Iterator[str]:
    """Yield the lines of a key and its value. Lists and plain values are on the line of their key."""
    blanks = " " * indent
    if not isinstance(value, Mapping) or not value:
        yield f"{blanks}{_scalar(key)}: {_inline(value)}"
        return
    yield f"{blanks}{_scalar(key)}:"
    for inner, each in cast("Mapping[str, Any]", value).items():
        yield from render_block(inner, each, indent + step, step)


def render_flow(value: Any) -> str:
    """Return a value on one line, as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value).items()
        return f"{{{', '.join(f'{quote(key)}: {render_flow(each)}' for key, each in pairs)}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(render_flow(each) for each in cast('Sequence[Any]', value))}]"
    return json.dumps(value)


def quote(text: str) -> str:
    """Return a text in double quotes that JSON and YAML read alike."""
    return _ESCAPED.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return value if _ADDRESS.fullmatch(value) else _scalar(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_inline_item(each) for each in cast('Sequence[Any]', value))}]"
    return render_flow(value)


def _inline_item(value: Any) -> str:
    return _scalar(value) if isinstance(value, str) else render_flow(value)


def _scalar(text: str) -> str:
    """Return the text without quotes if YAML cannot read it as anything else."""
    return text if _WORD.fullmatch(text) and plain_value(parse_yaml(text)) == text else quote(text)


COMMENT = "# Shared by the sessions of this agent; `dragoman mcp` shows them."
DEFAULT_STEP = 2

_USUAL_BREAK = re.compile("\r\n|[\n\r]")
_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


class MappingEntry(msgspec.Struct, frozen=True):
    """A name in the mapping under a key of the file, and its value."""

    key: str
    name: str
    value: Mapping[str, Any] = {}


def add(text: str, entry: MappingEntry) -> Iterator[str]:
    """Yield texts that include the entry. Raises YamlError."""
    root = parse_yaml(text)
    pair = _find(root, entry.key)
    if pair is None:
        yield from _add_key(text, root, entry)
    elif _is_block(pair[1]):
        yield from _add_to_block(text, pair[1], root, entry)
    elif pair[1].id == "mapping":
        yield from _into_flow(text, pair[1], _flow(entry))
    else:
        yield from _add_to_null(text, pair, root, entry)


def remove(text: str, entry: MappingEntry) -> Iterator[str]:
    """Yield texts without the entry. Raises YamlError."""
    root = parse_yaml(text)
    pair = _find(root, entry.key)
    if pair is None or pair[1].id != "mapping":
        return
    key, mapping = pair
    if len(mapping.value) == 1 and _is_added_by_us(text, key, mapping):
        yield from _remove_key(text, root, key)
    yield from _remove_pair(text, mapping, next(each for each, _ in mapping.value if each.value == entry.name))


def _find(root: Any, name: str) -> tuple[Any, Any] | None:
    pairs = root.value if root.id == "mapping" else ()
    return next(((key, value) for key, value in pairs if key.value == name), None)


def _add_key(text: str, root: Any, entry: MappingEntry) -> Iterator[str]:
    if root.id == "mapping" and root.flow_style:
        yield from _into_flow(text, root, f"{quote(entry.key)}: {{ {_flow(entry)} }}")
        return
    column, step = _column(root), _step(root)
    comment = f"{' ' * (column + step)}{COMMENT}"
    lines = [f"{' ' * column}{entry.key}:", comment, *_block(entry, column + step, step)]
    if text:
        yield _insert(text, len(text), ["", *lines])
    yield _insert(text, len(text), lines)
    if root.id == "mapping":
        yield _insert(text, _line_start(root.value[0][0]), lines)


def _add_to_block(text: str, mapping: Any, root: Any, entry: MappingEntry) -> Iterator[str]:
    first, last = mapping.value[0], mapping.value[-1]
    column = _column(mapping)
    step = _column(last[1]) - column if _is_block(last[1]) else column - _column(root)
    lines = list(_block(entry, column, step))
    yield _insert(text, _skip_comments(text, _after(text, last), column), lines)
    yield _insert(text, _after(text, last), lines)
    yield _insert(text, _line_start(first[0]), lines)


def _add_to_null(text: str, pair: tuple[Any, Any], root: Any, entry: MappingEntry) -> Iterator[str]:
    key, null = pair
    if not is_scalar(null, "null"):
        return
    start, end = null.start_mark.index, null.end_mark.index
    if root.flow_style:
        yield f"{text[:start].rstrip()} {{{_flow(entry)}}}{text[end:]}"
        return
    without = text[:start].rstrip(" ") + text[end:] if null.value else text
    step = _step(root)
    yield _insert(without, _line_end(without, key.end_mark.index), list(_block(entry, _column(root) + step, step)))


def _into_flow(text: str, mapping: Any, shown: str) -> Iterator[str]:
    if not mapping.value:
        at = text.index("{", mapping.start_mark.index) + 1
        yield f"{text[:at]}{shown}{text[at:]}"
        return
    key, value = mapping.value[-1]
    at = _end((key, value))
    before = text[_line_start(key) : key.start_mark.index]
    between = f"{_newline(text, at)}{before}" if before.isspace() else " "
    yield f"{text[:at]},{between}{shown}{text[at:]}"


def _remove_key(text: str, root: Any, key: Any) -> Iterator[str]:
    """Yield texts without a key that `add` created, and without the empty line before it."""
    start = _line_start(key)
    pair = next(pair for pair in root.value if pair[0] is key)
    blank = None if root.flow_style or _after(text, pair) < len(text) else _blank_line_before(text, start)
    if blank is not None:
        yield _cut(text, blank, len(text))
    yield from _remove_pair(text, root, key)


def _remove_pair(text: str, mapping: Any, key: Any) -> Iterator[str]:
    index = next(number for number, (each, _) in enumerate(mapping.value) if each is key)
    if mapping.flow_style:
        yield from _remove_from_flow(text, mapping.value, index)
        return
    yield _cut(text, _line_start(key), _after(text, mapping.value[index]))


def _remove_from_flow(text: str, pairs: Any, index: int) -> Iterator[str]:
    start, end = pairs[index][0].start_mark.index, _end(pairs[index])
    before = _end(pairs[index - 1]) if index else start
    if "#" not in text[before:start]:
        yield text[:before] + text[end:]
    if index + 1 < len(pairs):
        yield text[:start] + text[pairs[index + 1][0].start_mark.index :]
    comma = text.find(",", end)
    if comma >= 0 and text[end:comma].strip() == "":
        yield text[:start] + text[comma + 1 :]
    yield text[:start] + text[end:]


def _is_added_by_us(text: str, key: Any, mapping: Any) -> bool:
    first = mapping.value[0][0]
    if mapping.flow_style:
        return text[: first.start_mark.index].endswith("{ ")
    between = text[_line_end(text, key.end_mark.index) : _line_start(first)]
    return between.strip() == COMMENT


def _flow(entry: MappingEntry) -> str:
    return f"{quote(entry.name)}: {render_flow(entry.value)}"


def _block(entry: MappingEntry, indent: int, step: int) -> Iterator[str]:
    return render_block(entry.name, entry.value, indent, step)


def _column(node: Any) -> int:
    return node.value[0][0].start_mark.column if node.id == "mapping" and node.value else 0


def _step(root: Any) -> int:
    """Return the indentation of the file, taken from its first indented mapping."""
    pairs = root.value if root.id == "mapping" else ()
    steps = (_column(value) - key.start_mark.column for key, value in pairs if _is_block(value))
    return next((step for step in steps if step > 0), DEFAULT_STEP)


def _is_block(node: Any) -> bool:
    return node.id == "mapping" and not node.flow_style and bool(node.value)


def _end(pair: tuple[Any, Any]) -> int:
    """Return the position after the last character of an entry.

    The end mark of a block cannot be used, because it is after the trailing comments.
    """
    key, value = pair
    if value.id == "scalar" or value.flow_style or not value.value:
        return max(value.end_mark.index, key.end_mark.index)
    last = value.value[-1]
    return _end(last) if value.id == "mapping" else _end((last, last))


def _after(text: str, pair: tuple[Any, Any]) -> int:
    """Return the start of the line after an entry. The text of a block scalar already ends there."""
    end = _end(pair)
    return end if _break_before(text, end) else _line_end(text, end)


def _skip_comments(text: str, at: int, column: int) -> int:
    """Return the position after comments that are indented further than the entries. They belong to the last entry."""
    while found := re.compile(rf" {{{column + 1},}}#.*").match(text, at):
        at = _line_end(text, found.start())
    return at


def _line_start(node: Any) -> int:
    return node.start_mark.index - node.start_mark.column


def _line_end(text: str, at: int) -> int:
    found = _BREAK.search(text, at)
    return found.end() if found else len(text)


def _break_before(text: str, at: int) -> str:
    return next((each for each in ("\r\n", "\n", "\r", "\x85", "\u2028", "\u2029") if text.endswith(each, 0, at)), "")


def _blank_line_before(text: str, at: int) -> int | None:
    """Return the start of the empty line before this one, or None."""
    start = at - len(_break_before(text, at))
    return start if start < at and (start == 0 or _break_before(text, start)) else None


def _newline(text: str, at: int) -> str:
    """Return the line break that the text uses near this position."""
    breaks = _USUAL_BREAK.findall(text, 0, at) or _USUAL_BREAK.findall(text)
    return breaks[-1] if breaks else "\n"


def _insert(text: str, at: int, lines: list[str]) -> str:
    newline = _newline(text, at)
    block = newline.join(lines)
    if at == len(text) and text and not _break_before(text, at):
        return f"{text}{newline}{block}"
    return f"{text[:at]}{block}{newline}{text[at:]}"


def _cut(text: str, start: int, end: int) -> str:
    """Remove lines. At the end of a text without a final line break, remove the break before them as well."""
    if end == len(text) and not _break_before(text, end):
        start -= len(_break_before(text, start))
    return text[:start] + text[end:]
