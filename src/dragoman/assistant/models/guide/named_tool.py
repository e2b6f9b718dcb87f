"""A tool that the user names: `get_current_time timezone=Asia/Tokyo`, `call add {"a": 1, "b": 2}`, `echo hello`.

Arguments come from a JSON object, from `name=value`, `name: value` or `--name value`, and for the only required
parameter that is still missing from the rest of the words.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

from dragoman.assistant.models.guide.prompt import QUOTED, unquote_text
from dragoman.assistant.models.guide.routines import GuideRoutine, call_tool, refuse
from dragoman.assistant.models.model import ToolDefinition

BUILT_IN = frozenset(
    ("read_file", "write_file", "edit_file", "list_directory", "search_files", "run_command", "update_plan")
)
MAX_TITLE_CHARS = 100

_CALL = re.compile(r"\A(?:use|call|invoke)\s+(?:the\s+)?(?:tool\s+)?", re.IGNORECASE)
_JSON = re.compile(r"\{.*\}\s*\Z", re.DOTALL)
_TYPES: dict[str, type | tuple[type, ...]] = {
    "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


def find_named(text: str, tools: Sequence[ToolDefinition], *, is_sure: bool) -> GuideRoutine | None:
    """Return the routine that calls the tool whose name begins a request.

    A name of several words, or one after `call`, is sure to be a tool. A name such as `read` or `add` is not.
    """
    rest = _CALL.sub("", text, count=1)
    # Both names count, with or without the server's, and with blanks instead of underscores. The longest match wins, so
    # that `list_issues` is not read as a tool `list` with the argument `issues`.
    found: list[tuple[int, ToolDefinition]] = []
    for tool in tools:
        for name in (tool.name, own_name(tool)):
            parts = [re.escape(part) for part in re.split(r"[_\-\s]+", name) if part]
            pattern = r"[\s_-]+".join(parts)
            match = re.match(rf"`?{pattern}`?(?!\w)", rest, re.IGNORECASE)
            if parts and match and (len(parts) > 1 or rest != text) is is_sure and tool.name not in BUILT_IN:
                found.append((match.end(), tool))
                break
    longest = max((end for end, _ in found), default=0)
    named = [tool for end, tool in found if end == longest]
    if not named:
        return None
    if len(named) > 1:
        names = " or ".join(f"`{tool.name}`" for tool in named)
        return refuse(f"Several tools have this name. Use the full name of one: {names}.")
    return _call(named[0], rest[longest:])


def own_name(tool: ToolDefinition) -> str:
    """Return a tool's name without its server's."""
    return tool.name.rpartition("__")[2] or tool.name


def shown_name(tool: ToolDefinition) -> str:
    """Return a tool's title for the user. A server may put any text into it."""
    return " ".join((tool.title or tool.name).replace("`", "'").split())[:MAX_TITLE_CHARS]


def required_names(tool: ToolDefinition) -> list[str]:
    """Return the names of the required parameters. A schema may hold anything."""
    required = tool.parameters.get("required")
    return [str(name) for name in cast("list[object]", required)] if isinstance(required, list) else []


def _call(tool: ToolDefinition, text: str) -> GuideRoutine:
    values = _read_arguments(tool, text)
    missing = [name for name in required_names(tool) if name not in values]
    if not missing:
        return call_tool(tool.name, shown_name(tool), **values)
    usage = " ".join([own_name(tool), *(f"{name}=…" for name in required_names(tool))])
    return refuse(f"`{shown_name(tool)}` needs {' and '.join(f'`{name}`' for name in missing)}. Write `{usage}`.")


def _read_arguments(tool: ToolDefinition, text: str) -> dict[str, Any]:
    properties = _object(tool.parameters.get("properties"))
    # Each step removes the words it understood: first a JSON object at the end, then named arguments, longest name
    # first. The remaining words are the value of the only missing parameter.
    values: dict[str, Any] = {}
    if found := _JSON.search(text):
        try:
            values |= _object(json.loads(found[0]))
            text = text[: found.start()]
        except ValueError:
            pass
    for name in sorted(properties.keys() - values.keys(), key=len, reverse=True):
        key = re.escape(name)
        pattern = rf"(?<![\w-])(?:--{key}(?:\s+|=)|{key}\s*[=:]\s*)(?P<value>{QUOTED}|[^\s,;]+)"
        found = re.search(pattern, text, re.IGNORECASE | re.DOTALL)
        value = _convert(unquote_text(found["value"]), _object(properties[name])) if found else None
        if found and value is not None:
            values[name] = value
            text = f"{text[: found.start()]} {text[found.end() :]}"
    missing = [name for name in required_names(tool) if name not in values]
    rest = unquote_text(text.strip(" ,;:\t\n"))
    if len(missing) == 1 and rest:
        value = _convert(rest, _object(properties.get(missing[0])))
        values |= {} if value is None else {missing[0]: value}
    return values


def _convert(text: str, schema: dict[str, Any]) -> Any:
    """Return a text as a value that the schema allows, as far as its type and its choices say; else None."""
    choices = schema.get("enum")
    if isinstance(choices, list):
        return next((one for one in cast("list[object]", choices) if str(one).lower() == text.lower()), None)
    kind = _kind(schema)
    if kind not in _TYPES:
        return text
    try:
        value = json.loads(text)
    except ValueError:
        items = [piece.strip() for piece in text.split(",")]
        return items if kind == "array" and _kind(_object(schema.get("items"))) == "string" else None
    is_boolean = isinstance(value, bool)
    return value if isinstance(value, _TYPES[kind]) and is_boolean is (kind == "boolean") else None


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a schema, the first that is not null. Without a type, text is assumed."""
    options = schema.get("anyOf") or schema.get("oneOf")
    if isinstance(options, list):
        kinds = [_kind(_object(one)) for one in cast("list[object]", options)]
    else:
        named = schema.get("type", "object" if "properties" in schema or "$ref" in schema else "string")
        kinds = [str(kind) for kind in cast("list[object]", named)] if isinstance(named, list) else [str(named)]
    return next((kind for kind in kinds if kind != "null"), "null")


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
