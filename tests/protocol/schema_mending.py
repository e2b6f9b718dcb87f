"""A second implementation of the schema's leniency marks for malformed values, to compare with `lenient`."""

from functools import partial

from tests.protocol.schema_instances import V1, V2


class CannotMend(Exception):
    pass


def _mend(defs, node, value):
    """Return the value repaired as the schema allows. Raises CannotMend if no mark allows it."""
    if "$ref" in node:
        return _mend(defs, defs[node["$ref"].rsplit("/", 1)[1]], value)
    if "const" in node and value != node["const"]:
        raise CannotMend
    kinds = node.get("type", ())
    if kinds and not any(_is_of(kind, value) for kind in (kinds if isinstance(kinds, list) else [kinds])):
        raise CannotMend
    if "not" in node and value.get(node["required"][0]) in _known_tags(node):
        raise CannotMend
    value = _mend_inside(defs, node, value)
    for part in node.get("allOf", ()):
        value = _mend(defs, part, value)
    variants = node.get("oneOf") or node.get("anyOf")
    return _first_that_mends(defs, variants, value) if variants else value


def _known_tags(node):
    return [tag["const"] for each in node["not"]["anyOf"] for tag in each["properties"].values()]


def _first_that_mends(defs, variants, value):
    for variant in variants:
        try:
            return _mend(defs, variant, value)
        except CannotMend:
            continue
    raise CannotMend


def _mend_inside(defs, node, value):
    if isinstance(value, list) and "items" in node:
        return list(_items(defs, node, value))
    if isinstance(value, dict) and "properties" in node:
        return dict(_members(defs, node, value))
    if isinstance(value, dict) and isinstance(node.get("additionalProperties"), dict):
        return {key: _mend(defs, node["additionalProperties"], each) for key, each in value.items()}
    return value


def _items(defs, node, value):
    for item in value:
        try:
            yield _mend(defs, node["items"], item)
        except CannotMend:
            if "x-deserialize-skip-invalid-items" not in node:
                raise


def _members(defs, node, value):
    required = node.get("required", ())
    if any(name not in value for name in required):
        raise CannotMend
    for name, each in value.items():
        if name not in node["properties"]:
            yield name, each
            continue
        try:
            yield name, _mend(defs, node["properties"][name], each)
        except CannotMend:
            marks = node["properties"][name]
            is_null = each is None and "x-deserialize-default-on-null" in marks
            if not is_null and "x-deserialize-default-on-error" not in marks:
                raise
            if name in required:
                yield name, []


def _is_of(kind, value):
    if kind in ("integer", "number"):
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}[kind])


mend = partial(_mend, V1.defs)
mend_v2 = partial(_mend, V2.defs)
