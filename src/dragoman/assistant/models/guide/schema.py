"""JSON schemas of tools, read with care: they come from strangers."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from dragoman.assistant.models.model import ToolDefinition

_MAX_DEPTH = 12
"""How deep a schema is followed; deeper ones may refer to themselves."""

Schema = Mapping[str, Any]


class Parameter(msgspec.Struct, frozen=True):
    """One property of a tool's arguments, its references resolved."""

    name: str
    schema: dict[str, Any]
    required: bool
    kind: str
    description: str


def parameters(tool: ToolDefinition) -> list[Parameter]:
    """Return a tool's parameters, the required ones first, in their own order."""
    root = tool.parameters
    properties = _mapping(root.get("properties"))
    required = [name for name in _list(root.get("required")) if isinstance(name, str)]
    found = [_parameter(name, properties.get(name), root, required=True) for name in required]
    found += [
        _parameter(name, schema, root, required=False) for name, schema in properties.items() if name not in required
    ]
    return found


def _parameter(name: str, given: Any, root: Schema, *, required: bool) -> Parameter:
    whole = _mapping(given)
    schema = resolve(whole, root)
    description = whole.get("description") or schema.get("description") or ""
    return Parameter(name, dict(schema), required, _kind(schema), str(description))


def resolve(schema: Schema, root: Schema, depth: int = 0) -> Schema:
    """Follow local references, and the one alternative that is not null."""
    if depth > _MAX_DEPTH:
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        return resolve(_pointed(reference, root), root, depth + 1)
    for word in ("anyOf", "oneOf"):
        choices = [_mapping(choice) for choice in _list(schema.get(word))]
        real = [choice for choice in choices if choice.get("type") != "null"]
        if real:
            return {**schema_without(schema, word), **resolve(real[0], root, depth + 1)}
    return schema


def schema_without(schema: Schema, word: str) -> dict[str, Any]:
    """Return a schema without one of its keywords."""
    return {key: value for key, value in schema.items() if key != word}


def _pointed(reference: str, root: Schema) -> Schema:
    found: Any = root
    for step in reference[2:].split("/"):
        found = _mapping(found).get(step.replace("~1", "/").replace("~0", "~"))
    return _mapping(found)


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    kinds = [name for name in _list(kind) if isinstance(name, str) and name != "null"]
    if kinds:
        return kinds[0]
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema else "string"


def choices(schema: Schema) -> list[Any]:
    """Return the values that a schema allows, when it names them."""
    if "const" in schema:
        return [schema["const"]]
    return _list(schema.get("enum"))


_TYPES: dict[str, Any] = {"string": str, "boolean": bool, "array": list, "object": dict, "null": type(None)}


def misfit(value: Any, schema: Schema, root: Schema, depth: int = 0) -> str | None:
    """Say why a value does not fit a schema, or None; keywords not known here are taken as met."""
    if depth > _MAX_DEPTH:
        return None
    if "$ref" in schema:
        return misfit(value, resolve(schema, root), root, depth + 1)
    allowed = choices(schema)
    if ("enum" in schema or "const" in schema) and not any(same(value, choice) for choice in allowed):
        return f"it must be one of {', '.join(map(str, allowed[:12]))}"
    kinds = [schema["type"]] if isinstance(schema.get("type"), str) else _list(schema.get("type"))
    if kinds and not any(_is(value, kind) for kind in kinds):
        return f"it must be {_article(str(kinds[0]))}"
    return _outside(value, schema) or _inside(value, schema, root, depth) or _combined(value, schema, root, depth)


def same(value: Any, other: Any) -> bool:
    """Tell whether two JSON values are the same: true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _is(value: Any, kind: Any) -> bool:
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, _TYPES.get(kind, object))


def _article(kind: str) -> str:
    return {"integer": "a whole number", "boolean": "yes or no", "array": "a list", "object": "a JSON object"}.get(
        kind, f"a {kind}"
    )


def _outside(value: Any, schema: Schema) -> str | None:
    """Check size and form."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _out_of_range(value, schema)
    if not isinstance(value, str | list):
        return None
    unit = "Length" if isinstance(value, str) else "Items"
    size = len(cast("Sequence[Any]", value))
    if size < _number(schema.get(f"min{unit}"), 0):
        return "it is too short"
    if size > _number(schema.get(f"max{unit}"), size):
        return "it is too long"
    pattern = schema.get("pattern")
    if isinstance(value, str) and isinstance(pattern, str) and not _matches(pattern, value):
        return f"it must match {pattern}"
    return None


def _out_of_range(value: float, schema: Schema) -> str | None:
    if value < _number(schema.get("minimum"), value):
        return f"it must be at least {schema['minimum']}"
    if value > _number(schema.get("maximum"), value):
        return f"it must be at most {schema['maximum']}"
    low, high = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    if _is(low, "number") and value <= low:  # pyright: ignore[reportOperatorIssue] -- `_is` made it a number
        return f"it must be more than {low}"
    if _is(high, "number") and value >= high:  # pyright: ignore[reportOperatorIssue] -- `_is` made it a number
        return f"it must be less than {high}"
    step = schema.get("multipleOf")
    if _is(step, "number") and step and value % step:
        return f"it must be a multiple of {step}"
    return None


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # a dialect that is not Python's: the tool will judge for itself
        return True


def _inside(value: Any, schema: Schema, root: Schema, depth: int) -> str | None:
    if isinstance(value, list):
        items = _mapping(schema.get("items"))
        problems = (misfit(item, items, root, depth + 1) for item in cast("list[Any]", value))
        return next((problem for problem in problems if problem), None)
    if not isinstance(value, dict):
        return None
    entries = cast("dict[str, Any]", value)
    properties = _mapping(schema.get("properties"))
    for name in _list(schema.get("required")):
        if name not in entries:
            return f"`{name}` is missing"
    for name, entry in entries.items():
        if name not in properties and schema.get("additionalProperties") is False:
            return f"there is no `{name}`"
        problem = misfit(entry, _mapping(properties.get(name)), root, depth + 1)
        if problem:
            return f"`{name}`: {problem}"
    return None


def _combined(value: Any, schema: Schema, root: Schema, depth: int) -> str | None:
    for part in _list(schema.get("allOf")):
        problem = misfit(value, _mapping(part), root, depth + 1)
        if problem:
            return problem
    for word in ("anyOf", "oneOf"):
        problems = [misfit(value, _mapping(part), root, depth + 1) for part in _list(schema.get(word))]
        if problems and all(problems):
            return problems[0]
    return None


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _number(value: Any, default: float) -> float:
    return value if _is(value, "number") else default
