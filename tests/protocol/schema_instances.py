"""Valid instances of any definition of the ACP schema, derived from the schema itself, and its verdict on others."""

import copy
import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any

import jsonschema

WRONG = {str: 5, bool: "wrong", int: "wrong", float: "wrong", dict: "wrong", list: "wrong"}
Path = tuple[str | int, ...]


class PinnedSchema:
    """The schema of one protocol version, both with everything unstable and as the stable one."""

    def __init__(self, version):
        folder = files("dragoman.protocol") / "schema" / version
        self.defs = json.loads((folder / "schema.unstable.json").read_text("utf-8"))["$defs"]
        self.stable = json.loads((folder / "schema.json").read_text("utf-8"))["$defs"]
        self._validators = jsonschema.validators.extend(jsonschema.Draft202012Validator, {"$ref": self._follow})
        self._judge = cache(self._judge)
        self._of_definition = cache(self._of_definition)

    def _follow(self, validator, reference, value, _):
        """Look up a definition directly. A general reference resolver takes a third of the validation time."""
        yield from validator.descend(value, self.defs[reference.rsplit("/", 1)[1]])

    def is_valid(self, name, value):
        """Return whether the schema accepts a value as that definition."""
        return self._judge(name, json.dumps(value))

    def _judge(self, name, text):
        """Judge each value once. Several tests check the same values, and each verdict takes a millisecond."""
        validator = self._validators({"$ref": f"#/$defs/{name}", "$defs": self.defs})
        return validator.is_valid(json.loads(text))

    def minimal(self, node):
        """Return the smallest instance of a node, with required properties only."""
        return next(iter(self.instances(node)))

    def _of_definition(self, name):
        return tuple(self._instances(self.defs[name]))

    def instances(self, node) -> Iterator[Any]:
        """Yield instances of a node that together use every property and variant below it, the minimal one first."""
        for value in self._instances(node):
            yield json.loads(json.dumps(value))  # a copy, in a fraction of the time of `deepcopy`

    def _instances(self, node):
        if "$ref" in node:
            yield from self._of_definition(node["$ref"].rsplit("/", 1)[1])
        elif "const" in node:
            yield node["const"]
        elif "properties" in node or "allOf" in node or "oneOf" in node or "anyOf" in node:
            yield from self._combined(node)
        else:
            yield from self._plain(node)

    def _combined(self, node):
        """Combine the node's properties, the parts it includes and its variants."""
        parts = [list(self._instances(part)) for part in node.get("allOf", ())]
        variants = [list(self._instances(variant)) for variant in node.get("oneOf") or node.get("anyOf") or ()]
        own = list(self._objects(node)) if "properties" in node else []
        if "not" in node:
            own = [{**each, _tag_of_other(node): "_other"} for each in own]
        groups = [*parts, [each for variant in variants for each in variant], own]
        groups = [group for group in groups if group]
        yield _merge([group[0] for group in groups])
        for index, group in enumerate(groups):
            for value in group[1:]:
                yield _merge(
                    [*(other[0] for other in groups[:index]), value, *(other[0] for other in groups[index + 1 :])]
                )

    def _objects(self, node):
        required = node.get("required", ())
        choices = {name: list(self._instances(each)) for name, each in node["properties"].items()}
        smallest = {name: choices[name][0] for name in node["properties"] if name in required}
        yield smallest
        for name, values in choices.items():
            for value in values[1:] if name in required else values:
                yield {**smallest, name: value}

    def _plain(self, node):
        kinds = node.get("type", "string")
        for kind in kinds if isinstance(kinds, list) else [kinds]:
            if kind == "array":
                yield from ([item] for item in self._instances(node["items"]))
            elif kind == "object" and isinstance(node.get("additionalProperties"), dict):
                yield from ({"key": value} for value in self._instances(node["additionalProperties"]))
            else:
                yield {"object": {}, "null": None, "boolean": True, "integer": 7, "number": 0.5, "string": "words"}[
                    kind
                ]

    def mutations(self, name) -> Iterator[tuple[Path, str, Any]]:
        """Yield instances of a definition with one member removed or of another type, each kind of change once."""
        seen = set()
        for instance in self.instances(self.defs[name]):
            for path in members(instance):
                for kind, change in (("missing", without), ("wrong", _with_wrong)):
                    sketch = path, kind, type(at(instance, path)), _sketch(_parent(instance, path))
                    if sketch not in seen and at(instance, path) is not None:
                        seen.add(sketch)
                        yield path, kind, change(instance, path)


def _tag_of_other(node):
    return node["required"][0]


def _merge(values):
    if len(values) == 1:
        return values[0]
    merged = {}
    for value in values:
        merged |= value
    return merged


def members(value, path: Path = ()) -> Iterator[Path]:
    """Yield the paths of all members of objects inside a value."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield (*path, key)
            yield from members(each, (*path, key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from members(each, (*path, index))


def without(value, path: Path):
    """Return the value with the member at that path removed."""
    changed = copy.deepcopy(value)
    del _parent(changed, path)[path[-1]]
    return changed


def with_other(value, path: Path, other):
    """Return the value with another member at that path."""
    changed = copy.deepcopy(value)
    _parent(changed, path)[path[-1]] = other
    return changed


def at(value, path: Path):
    """Return the value at a path."""
    return _parent(value, path)[path[-1]]


def _parent(value, path: Path):
    for step in path[:-1]:
        value = value[step]
    return value


def dotted(root, path: Path):
    """Return a path as formatted in our errors."""
    return root + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _with_wrong(value, path: Path):
    return with_other(value, path, WRONG[type(at(value, path))])


def _sketch(value):
    return tuple((key, each if isinstance(each, str) else type(each)) for key, each in sorted(value.items()))


V1 = PinnedSchema("v1")
V2 = PinnedSchema("v2")
DEFS = V1.defs
STABLE = V1.stable
instances = V1.instances
is_valid = V1.is_valid
minimal = V1.minimal
mutations = V1.mutations
