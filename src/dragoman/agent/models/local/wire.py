"""How a local model answers: one JSON object, either `{"reply": "…"}` or `{"tool": "NAME", "arguments": {…}}`.

The decoder is held to it by a grammar with a rule for each tool, each with that tool's own schema, so that references
inside a schema keep their meaning.
"""

import json
from collections.abc import Sequence
from typing import Any

from dragoman.agent.models.local.schema import SPACING, usable_schema
from dragoman.agent.models.model import ToolDefinition

REPLY_OPENING = '{"reply": "'
TOOL_OPENING = '{"tool": "'


def write_reply(text: str) -> str:
    """Return a plain reply as the model writes it."""
    return json.dumps({"reply": text}, ensure_ascii=False)


def write_call(name: str, arguments: dict[str, Any]) -> str:
    """Return a call of a tool as the model writes it."""
    return json.dumps({"tool": name, "arguments": arguments}, ensure_ascii=False)


def grammar(tools: Sequence[ToolDefinition]) -> str:
    """Return the grammar of all that the model may write when it has these tools."""
    names = [f"tool_{index}" for index in range(len(tools))]
    text = {"type": "string", "minLength": 1, "x-guidance": SPACING}
    lines = [
        "%llguidance {}",
        f"start: {' | '.join(['reply', *names])}",
        f'reply: {_literal(REPLY_OPENING[:-1])} text "}}"',
        f"text: %json {json.dumps(text)}",
    ]
    for name, tool in zip(names, tools, strict=True):
        opening = f'{TOOL_OPENING[:-1]}{json.dumps(tool.name, ensure_ascii=False)}, "arguments": '
        lines.append(f'{name}: {_literal(opening)} arguments_{name} "}}"')
        lines.append(f"arguments_{name}: %json {json.dumps(usable_schema(tool.parameters))}")
    return "\n".join(lines) + "\n"


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
