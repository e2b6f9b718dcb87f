"""The arguments of a tool: a struct that provides the model's JSON schema and decodes its arguments.

Both must be clear to the model, which corrects a call only from their text. So schemas contain no `$ref`, which some
providers reject, and no `null`, which models then send without need. A `null` is still accepted.
"""

import re
from functools import cache
from typing import Any, TypeVar, cast

import msgspec

from dragoman.agent.turns.prepared_call import ToolError

T = TypeVar("T", bound="Arguments")
Schema = dict[str, Any]

_REF = "#/$defs/"
_AT = re.compile(r"^(?P<problem>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_QUOTED = re.compile(r"`([^`]*)`")
_WORDS = {
    "int": "an integer",
    "int | null": "an integer",
    "str": "a string",
    "str | null": "a string",
    "float": "a fraction",
    "bool": "a boolean",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base class of every tool's arguments."""


@cache
def make_schema(arguments: type[Arguments]) -> Schema:
    """Return the JSON schema of the arguments, without references."""
    (schema,), components = msgspec.json.schema_components([arguments])
    return cast("Schema", _simplify(schema, components))


def decode(arguments: type[T], raw: dict[str, Any], tool: str) -> T:
    """Return the typed arguments. Raises ToolError with a message for the model."""
    try:
        msgspec.json.encode(raw)
        return msgspec.convert(raw, arguments)
    except UnicodeEncodeError:
        raise ToolError(f"the arguments of {tool} are not valid Unicode; leave out lone surrogates") from None
    except msgspec.ValidationError as error:
        problem = f"the arguments of {tool} do not fit: {_explain(str(error))}"
        raise ToolError(f"{problem}; expected {_signature(make_schema(arguments))}") from None


def _simplify(schema: Any, components: dict[str, Any]) -> Any:
    # Inline each `$ref`, drop the null of optional arguments, and add the type that msgspec leaves out of an enum.
    if isinstance(schema, list):
        return [_simplify(each, components) for each in cast("list[Any]", schema)]
    if not isinstance(schema, dict):
        return schema
    node = cast("Schema", schema)
    if "$ref" in node:
        named = components[node["$ref"].removeprefix(_REF)]
        described = {key: value for key, value in named.items() if key not in ("title", "description")}
        return _simplify(described, components)
    if "anyOf" in node:
        (only,) = [each for each in node["anyOf"] if each != {"type": "null"}]
        return _simplify(only, components)
    simple = {key: _simplify(value, components) for key, value in node.items()}
    return {"type": "string", **simple} if "enum" in simple else simple


def _explain(message: str) -> str:
    match = _AT.match(message)
    problem, path = (match["problem"], match["path"]) if match else (message, None)
    text = _QUOTED.sub(lambda quoted: _WORDS.get(quoted[1], quoted[1]), problem)
    text = text[:1].lower() + text[1:]
    return f"{path}: {text}" if path else text


def _signature(schema: Schema) -> str:
    """Return a schema as `{path: string, start_line?: integer}`."""
    if "properties" in schema:
        required: list[str] = schema.get("required", [])
        properties: dict[str, Schema] = schema["properties"]
        fields = (f"{key}{'' if key in required else '?'}: {_signature(each)}" for key, each in properties.items())
        return "{" + ", ".join(fields) + "}"
    if "items" in schema:
        return f"[{_signature(schema['items'])}, …]"
    if "enum" in schema:
        return "|".join(map(str, schema["enum"]))
    return str(schema.get("type", "any"))
