"""HTTP headers that repeat parts of a modern request, so that proxies can route it without reading its body.

Each request has `Mcp-Method` and `Mcp-Name`. A tool's parameter with `x-mcp-header` in its schema is sent as
`Mcp-Param-…`. A tool whose annotations break the rules of the specification must not be used over HTTP.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from dragoman.errors import DragomanError

ANNOTATION = "x-mcp-header"
PREFIX = "Mcp-Param-"

NAMES = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that is sent as `Mcp-Name`, by method."""

MAX_SAFE_INTEGER = 2**53 - 1

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_PLAIN = re.compile(r"[\x20-\x7e]*")
_ENCODED = re.compile(r"=\?base64\?.*\?=")
_TYPES = frozenset(("string", "integer", "boolean"))
_SCHEMA_KEYS = frozenset(
    (
        *("items", "contains", "unevaluatedItems", "additionalProperties", "propertyNames", "unevaluatedProperties"),
        *("not", "if", "then", "else", "contentSchema"),
    )
)
_LIST_KEYS = frozenset(("allOf", "anyOf", "oneOf", "prefixItems"))
_MAP_KEYS = frozenset(("patternProperties", "dependentSchemas", "$defs", "definitions"))

ParameterPath = tuple[str, ...]


class InvalidAnnotationError(DragomanError):
    """An `x-mcp-header` of a tool breaks the rules."""


def request_headers(method: str, params: Mapping[str, Any], version: str) -> dict[str, str]:
    """Return the headers of a modern request."""
    headers = {"MCP-Protocol-Version": version, "Mcp-Method": method}
    name = params.get(NAMES.get(method, ""))
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    return headers


def encode_value(value: str) -> str:
    """Return a value for a header: unchanged if possible, else base64 between markers."""
    if _PLAIN.fullmatch(value) and value == value.strip() and not _ENCODED.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def find_annotations(schema: Mapping[str, Any]) -> dict[ParameterPath, str]:
    """Return the header name of each annotated parameter of a tool. Raises InvalidAnnotationError."""
    found: dict[ParameterPath, str] = {}
    header_names: set[str] = set()
    for path, part in _positions(schema):
        if ANNOTATION not in part:
            continue
        header = part[ANNOTATION]
        if not path:
            raise InvalidAnnotationError(f"the schema itself has an {ANNOTATION}; only parameters can have one")
        if not isinstance(header, str) or not _TOKEN.fullmatch(header):
            raise InvalidAnnotationError(f"the {ANNOTATION} of {'.'.join(path)} is not a header name")
        if part.get("type") not in _TYPES:
            raise InvalidAnnotationError(
                f"{'.'.join(path)} has an {ANNOTATION} but is not a string, integer or boolean"
            )
        if header.lower() in header_names:
            raise InvalidAnnotationError(f"two parameters have the same {ANNOTATION} {header}")
        header_names.add(header.lower())
        found[path] = header
    return found


def parameter_headers(annotations: Mapping[ParameterPath, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers for the arguments of a call. An absent or null argument has no header."""
    headers: dict[str, str] = {}
    for path, header in annotations.items():
        text = _text_of(_value_at(path, arguments))
        if text is not None:
            headers[PREFIX + header] = encode_value(text)
    return headers


def _positions(root: Mapping[str, Any]) -> Iterator[tuple[ParameterPath | None, dict[str, Any]]]:
    """Yield each nested schema with its path of `properties`, or None if another keyword is on the way.

    Data (`default`, `enum`, `const`, `examples`) is not searched, and a `$ref` is not followed.
    """
    stack: list[tuple[ParameterPath | None, Any]] = [((), root)]
    while stack:
        path, node = stack.pop()
        if not isinstance(node, dict):
            continue
        part = cast("dict[str, Any]", node)
        yield path, part
        for key, value in part.items():
            if key == "properties" and isinstance(value, dict):
                inner = cast("dict[str, Any]", value)
                stack.extend((None if path is None else (*path, name), each) for name, each in inner.items())
            elif key in _SCHEMA_KEYS:
                stack.append((None, value))
            elif key in _LIST_KEYS and isinstance(value, list):
                stack.extend((None, each) for each in cast("list[Any]", value))
            elif key in _MAP_KEYS and isinstance(value, dict):
                stack.extend((None, each) for each in cast("dict[str, Any]", value).values())


def _value_at(path: ParameterPath, arguments: Mapping[str, Any]) -> Any:
    value: Any = arguments
    for name in path:
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
    return value


def _text_of(value: Any) -> str | None:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case int() if abs(value) <= MAX_SAFE_INTEGER:
            return str(value)
        case float() if value.is_integer() and abs(value) <= MAX_SAFE_INTEGER:
            return str(int(value))
        case _:
            return None
