"""Reads the ACP schema: definitions, references, and the additions of the unstable schema."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

Node = Mapping[str, Any]
"""One JSON Schema node."""

_REF = "#/$defs/"


class Schema:
    """The unstable schema, which is complete, and the stable schema, which tells the stable parts."""

    def __init__(self, unstable: Node, stable: Node) -> None:
        self.defs: dict[str, Node] = {
            name: node for name, node in unstable["$defs"].items() if not node.get("x-docs-ignore")
        }
        self._stable: Mapping[str, Node] = stable["$defs"]
        self._uses = Counter(ref for node in self.defs.values() for ref in _refs(node))

    def is_used_once(self, name: str) -> bool:
        """Return whether only one place refers to the definition."""
        return self._uses[name] == 1

    def is_stable(self, name: str, part: str | None = None) -> bool:
        """Return whether a definition, or its property or variant of that name, is in the stable schema."""
        node = self._stable.get(name)
        if node is None or part is None:
            return node is not None
        return any(part in properties(each) or part == variant_title(each) for each in (node, *variants(node)))


def _refs(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, value in cast("dict[str, object]", node).items():
            if key == "$ref":
                yield str(value).removeprefix(_REF)
            else:
                yield from _refs(value)
    elif isinstance(node, list):
        for value in cast("list[object]", node):
            yield from _refs(value)


def ref_name(node: Node) -> str | None:
    """Return the name of the definition that a node refers to, by `$ref` or by an `allOf` of one."""
    if "$ref" in node:
        return str(node["$ref"]).removeprefix(_REF)
    parts = node.get("allOf", ())
    return ref_name(parts[0]) if len(parts) == 1 else None


def properties(node: Node) -> Mapping[str, Node]:
    """Return the properties of an object node, consts included."""
    return node.get("properties", {})


def variants(node: Node) -> list[Node]:
    """Return the variants of a union node."""
    return node.get("oneOf") or node.get("anyOf") or []


def tag_of(variant: Node) -> tuple[str, str] | None:
    """Return the property and the value that identify a variant."""
    for name, node in properties(variant).items():
        if "const" in node:
            return name, node["const"]
    return None


def variant_title(variant: Node) -> str:
    """Return the name of a variant: its tag, or else its title."""
    tag = tag_of(variant)
    return tag[1] if tag else variant.get("title", "")


def is_other(variant: Node) -> bool:
    """Return whether a variant accepts any tag that the others do not have."""
    return "not" in variant


def tag_of_other(variant: Node) -> str | None:
    """Return the property whose value must not be a tag of the other variants, or None."""
    if not is_other(variant):
        return None
    excluded = variants(variant["not"]) or [variant["not"]]
    return next(name for each in excluded for name in properties(each))


def is_anything(variant: Node) -> bool:
    """Return whether a variant accepts any value."""
    return not any(key in variant for key in ("type", "const", "$ref", "allOf", "oneOf", "anyOf"))


def is_nullable(node: Node) -> bool:
    """Return whether null is a valid value."""
    kinds = node.get("type")
    return (isinstance(kinds, list) and "null" in kinds) or any(each.get("type") == "null" for each in variants(node))


def snake(wire: str) -> str:
    """Return the Python name of a wire name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", wire.lstrip("_")).lower()


def pascal(tag: str) -> str:
    """Return the class name for a tag."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[_\W]", tag))
