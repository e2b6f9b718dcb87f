"""A tool's JSON schema reduced to the part that the decoder can enforce.

The library says nothing when it cannot use a schema: it lets the model write anything. So only what it is known to
understand is kept, which makes a schema wider, never wrong: the tool checks its arguments as ever. Objects are closed
where that cannot contradict the rest, since a small model would go on inventing fields.
"""

from collections.abc import Mapping
from typing import Any, cast

SPACING = {"whitespace_flexible": False, "key_separator": ": ", "item_separator": ", "}
"""How it shall be written: with the spaces that models have read most, and no others to get lost in."""

MAX_DEPTH = 32

_TYPES = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_PAIRS = (("minLength", "maxLength"), ("minItems", "maxItems"), ("minimum", "maximum"))
_DEFINITIONS = ("$defs", "definitions")
_ELSEWHERE = ("anyOf", "oneOf", "allOf", "$ref", "patternProperties", "if", "dependentSchemas", "additionalProperties")

Schema = dict[str, Any]


def usable_schema(parameters: Mapping[str, Any]) -> Schema:
    """Return the schema of an object that the decoder can follow, and that allows nothing the tool's own refuses…

    … apart from what cannot be expressed to it, such as patterns.
    """
    reducer = _Reducer(parameters)
    schema = reducer.reduce(parameters, 0)
    if "anyOf" not in schema and "$ref" not in schema:
        schema["type"] = "object"
        schema.setdefault("properties", {})
        schema.setdefault("additionalProperties", not _can_close(parameters))
    return schema | reducer.definitions() | {"x-guidance": SPACING}


class _Reducer:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._names = {
            f"#/{place}/{name}"
            for place in _DEFINITIONS
            for name in _mapping(root.get(place))
            if not set(name) & set("/~%")
        }

    def definitions(self) -> Schema:
        places = {place: _mapping(self._root.get(place)) for place in _DEFINITIONS}
        return {
            place: {name: self.reduce(each, 0) for name, each in found.items()}
            for place, found in places.items()
            if found
        }

    def reduce(self, schema: object, depth: int) -> Schema:
        """Return the usable part of any schema; the schema of any value when there is none."""
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH:
            return {}
        given = cast("Mapping[str, Any]", schema)
        if "$ref" in given:
            return {"$ref": given["$ref"]} if given["$ref"] in self._names else {}
        if "const" in given:
            return {"const": given["const"]}
        if _list(given.get("enum")):
            return {"enum": given["enum"]}
        return self._combined(given, depth) or self._plain(given, depth)

    def _combined(self, given: Mapping[str, Any], depth: int) -> Schema | None:
        """Return the choice that it is between others, unless it says more itself."""
        if "properties" in given:
            return None
        if choices := _list(given.get("anyOf")) or _list(given.get("oneOf")):
            return {"anyOf": [self.reduce(choice, depth + 1) for choice in choices]}
        parts = _list(given.get("allOf"))
        return self.reduce(parts[0], depth + 1) if len(parts) == 1 else None

    def _plain(self, given: Mapping[str, Any], depth: int) -> Schema:
        kept = _kind(given) | _limits(given)
        if isinstance(given.get("properties"), Mapping) or kept.get("type") == "object":
            kept |= self._object(given, depth)
        if isinstance(given.get("items"), Mapping):
            kept["items"] = self.reduce(given["items"], depth + 1)
        return kept

    def _object(self, given: Mapping[str, Any], depth: int) -> Schema:
        found = _mapping(given.get("properties"))
        properties = {name: self.reduce(each, depth + 1) for name, each in found.items()}
        required = [name for name in _list(given.get("required")) if isinstance(name, str)]
        properties |= {name: {} for name in required if name not in properties}
        kept: Schema = {"type": "object", "properties": properties, "required": required}
        more = given.get("additionalProperties")
        if isinstance(more, Mapping):
            kept["additionalProperties"] = self.reduce(cast("object", more), depth + 1)
        elif isinstance(more, bool):
            kept["additionalProperties"] = more
        elif properties and _can_close(given):
            kept["additionalProperties"] = False
        return kept


def _can_close(given: Mapping[str, Any]) -> bool:
    return not any(key in given for key in _ELSEWHERE)


def _kind(given: Mapping[str, Any]) -> Schema:
    kind = given.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return {"type": kind}
    kinds = [each for each in _list(kind) if isinstance(each, str) and each in _TYPES]
    return {"type": kinds} if kinds else {}


def _limits(given: Mapping[str, Any]) -> Schema:
    """Return the limits that can be kept; a pair that leaves nothing in between would make all of it unusable."""
    kept: Schema = {key: given[key] for key in _COUNTS if _is_number(given.get(key), whole=True) and given[key] >= 0}
    kept |= {key: given[key] for key in _BOUNDS if _is_number(given.get(key), whole=False)}
    for low, high in _PAIRS:
        if low in kept and high in kept and kept[low] > kept[high]:
            del kept[low], kept[high]
    return kept


def _is_number(value: object, *, whole: bool) -> bool:
    return isinstance(value, int if whole else int | float) and not isinstance(value, bool)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []
