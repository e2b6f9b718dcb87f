"""Plain values as YAML that a person would write: block style, or on one line, where it is JSON as well."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from dragoman.agent.yaml.nodes import parse_yaml, plain_value

_WORD = re.compile(r"-{0,2}[A-Za-z_./][A-Za-z0-9_./@+-]*")
_ADDRESS = re.compile(r"(?:env|https?)://[A-Za-z0-9_./-]+")
_ODD = re.compile("[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def render_block(key: str, value: Any, indent: int, step: int) -> Iterator[str]:
    """Yield the lines of a key and its value; lists and plain values stand on the line of their key."""
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
    """Return a text in double quotes, in which JSON and YAML agree."""
    return _ODD.sub(lambda odd: f"\\u{ord(odd[0]):04x}", json.dumps(text, ensure_ascii=False))


def _inline(value: Any) -> str:
    if isinstance(value, str):
        return value if _ADDRESS.fullmatch(value) else _scalar(value)
    if isinstance(value, Sequence):
        return f"[{', '.join(_inline_item(each) for each in cast('Sequence[Any]', value))}]"
    return render_flow(value)


def _inline_item(value: Any) -> str:
    return _scalar(value) if isinstance(value, str) else render_flow(value)


def _scalar(text: str) -> str:
    """Leave out the quotes where no reader of YAML could take the text for something else."""
    return text if _WORD.fullmatch(text) and plain_value(parse_yaml(text)) == text else quote(text)
