"""Generate scripts/page/acp.d.ts, the protocol's messages for the type check of the page. `--check` only compares.

The page is plain JavaScript. `tsc --checkJs` reads these types, and none of them is served. They come from the pinned
schema, so that `make check` finds a misspelled or possibly null field.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "dragoman" / "protocol" / "schema" / "v1" / "schema.unstable.json"
TARGET = ROOT / "scripts" / "page" / "acp.d.ts"

MESSAGES = [
    "InitializeRequest",
    "InitializeResponse",
    "AuthStatusResponse",
    "NewSessionRequest",
    "NewSessionResponse",
    "LoadSessionRequest",
    "LoadSessionResponse",
    "ForkSessionResponse",
    "ListSessionsResponse",
    "PromptRequest",
    "PromptResponse",
    "SetSessionConfigOptionResponse",
    "SessionNotification",
    "RequestPermissionRequest",
    "RequestPermissionResponse",
    "CreateElicitationRequest",
    "CreateElicitationResponse",
    "CompleteElicitationNotification",
    "Error",
]
"""The messages that the page sends or receives. Every type that they refer to is generated as well."""

PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
HEAD = """\
// Generated from the pinned ACP schema by scripts/generate_page_types.py: do not edit.

declare namespace acp {
"""

Node = dict[str, Any] | bool


def render(schema: dict[str, Any]) -> str:
    """Return the declarations of all types that MESSAGES refer to."""
    definitions: dict[str, Any] = schema["$defs"]
    bodies: dict[str, str] = {}
    waiting = [name for name in MESSAGES if name in definitions]
    if missing := set(MESSAGES) - set(waiting):
        raise SystemExit(f"The schema has no {', '.join(sorted(missing))}; mend MESSAGES in {__file__}.")
    while waiting:
        name = waiting.pop()
        if name not in bodies:
            bodies[name] = type_of(definitions[name])
            waiting += re.findall(r"acp\.(\w+)", bodies[name])
    lines = [f"  type {name} = {bodies[name].replace('acp.', '')};\n" for name in sorted(bodies)]
    return HEAD + "".join(lines) + "}\n"


def type_of(node: Node) -> str:
    """Return the TypeScript of one schema. References are written as `acp.Name`."""
    if isinstance(node, bool):
        return "any"
    if "$ref" in node:
        return "acp." + node["$ref"].rpartition("/")[2]
    if "const" in node:
        return json.dumps(node["const"])
    if "enum" in node:
        return " | ".join(json.dumps(value) for value in node["enum"])
    # An object with variants has its own fields and the fields of one of the variants.
    parts = [type_of(each) for each in node.get("allOf", [])]
    if variants := node.get("oneOf") or node.get("anyOf"):
        parts.append(grouped(dict.fromkeys(type_of(each) for each in variants if not is_extension(each))))
    if "properties" in node or not parts:
        parts.insert(0, own_type(node))
    return " & ".join(dict.fromkeys(parts))


def is_extension(variant: Node) -> bool:
    """Return whether a variant stands for unknown future variants. With it, a kind check would not narrow the type."""
    return isinstance(variant, dict) and variant.get("title") == "other" and variant.get("type") == "object"


def own_type(node: dict[str, Any]) -> str:
    """Return the type that a schema defines by `type`, `properties` and `items`."""
    named: list[str] | str = node.get("type", [])
    types = [named] if isinstance(named, str) else named
    return grouped(dict.fromkeys(one_type(each, node) for each in types)) if types else "any"


def one_type(name: str, node: dict[str, Any]) -> str:
    """Return the TypeScript of one of the types that a schema allows."""
    if name == "array":
        return f"Array<{type_of(node.get('items', True))}>"
    return object_type(node) if name == "object" else PLAIN[name]


def object_type(node: dict[str, Any]) -> str:
    """Return an object with its fields. Fields that are not required may be absent."""
    required = node.get("required", [])
    fields = [
        f"{json.dumps(name)}{'' if name in required else '?'}: {type_of(each)}"
        for name, each in node.get("properties", {}).items()
    ]
    if fields:
        return "{ " + "; ".join(fields) + " }"
    more: Node = node.get("additionalProperties", True)
    return f"Record<string, {type_of(more) if more is not False else 'never'}>"


def grouped(types: dict[str, None]) -> str:
    """Return a union, in parentheses if it has more than one member."""
    return next(iter(types)) if len(types) == 1 else "(" + " | ".join(types) + ")"


def main() -> int:
    """Write the file, or check it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not up to date")
    source = render(json.loads(SCHEMA.read_text("utf-8")))
    if not parser.parse_args().check:
        TARGET.write_text(source, "utf-8")
    elif not TARGET.exists() or TARGET.read_text("utf-8") != source:
        print(f"{TARGET} is not what the schema gives; run scripts/generate_page_types.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
