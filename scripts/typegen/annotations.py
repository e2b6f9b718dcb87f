"""Python type expressions for schema nodes."""

from typing import cast

from typegen.schema import Node, is_nullable, is_other, ref_name, variants

INTEGERS = {
    "UInt16": "Annotated[int, Meta(ge=0, le=65535)]",
    "UInt32": "Annotated[int, Meta(ge=0, le=4294967295)]",
    "UInt64": "Annotated[int, Meta(ge=0)]",
    "Int32": "Annotated[int, Meta(ge=-2147483648, le=2147483647)]",
    "Int64": "Annotated[int, Meta(ge=-9223372036854775808, le=9223372036854775807)]",
}
"""The integer formats of the schema. msgspec accepts no bound beyond signed 64 bits, so UInt64 has no upper one."""

_PLAIN = {"null": "None", "boolean": "bool", "number": "float", "string": "str"}
_BY_FORMAT = {name.lower(): name for name in INTEGERS}


def annotate(node: Node) -> str:
    """Return the Python type of a node."""
    name = ref_name(node)
    if name is not None:
        return name
    if variants(node):
        return " | ".join(annotate(each) for each in _null_last(variants(node)))
    return " | ".join(_of_kind(node, kind) for kind in _kinds(node)) or "Any"


def annotate_enum(node: Node) -> str | None:
    """Return the Python type of a union of constants, or None if it is not one."""
    each = variants(node)
    constants = [variant["const"] for variant in each if "const" in variant]
    open_ended = [variant for variant in each if "const" not in variant]
    if not constants or any(variant.get("type") not in ("string", "integer") for variant in open_ended):
        return None
    if open_ended:
        return annotate(open_ended[0])
    return "Literal[" + ", ".join(f'"{constant}"' for constant in constants) + "]"


def is_scalar_union(node: Node) -> bool:
    """Return whether msgspec can decode a union by the JSON type of the value."""
    each = variants(node)
    kinds = [variant.get("type") for variant in each]
    return bool(each) and "object" not in kinds and None not in kinds and len(set(kinds)) == len(kinds)


def _of_kind(node: Node, kind: str) -> str:
    match kind:
        case "integer":
            return _BY_FORMAT[node["format"]]
        case "string" if "minLength" in node:
            return f"Annotated[str, Meta(min_length={node['minLength']})]"
        case "array":
            return f"list[{annotate(node['items'])}]"
        case "object":
            return f"dict[str, {_values(node)}]"
        case _:
            return _PLAIN[kind]


def _kinds(node: Node) -> list[str]:
    kinds = node.get("type", [])
    each = cast("list[str]", kinds if isinstance(kinds, list) else [kinds])
    return sorted(each, key=lambda kind: kind == "null")


def _values(node: Node) -> str:
    values = node.get("additionalProperties", True)
    return "Any" if values is True else annotate(values)


def _null_last(each: list[Node]) -> list[Node]:
    return sorted((node for node in each if not is_other(node)), key=lambda node: node.get("type") == "null")


def default_of(node: Node) -> str | None:
    """Return the source of an absent optional field's value, or None if Python has no such value."""
    if is_nullable(node):
        return "None"
    default = node.get("default")
    name = ref_name(node)
    if isinstance(default, dict) and name is not None:
        return f"{name}()"
    if isinstance(default, str):
        return f'"{default}"'
    if isinstance(default, bool):
        return repr(default)
    return {"array": "[]", "object": "{}"}.get(node.get("type", ""))
