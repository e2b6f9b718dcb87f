"""Sessions in formats of other programs: ATIF, which harbor reads, and messages of OpenAI's chat completions.

ATIF (Agent Trajectory Interchange Format) is a list of steps, like `SessionTrajectory`. `to_atif` writes version 1.7.
Titles and the status of calls are in `extra`. Both formats need tool names. If the agent does not report the name of
a tool, the kind of the call is used.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, cast

import msgspec

from dragoman.client.sessions.tool_call import ToolCallState
from dragoman.client.transcripts.session_trajectory import SessionTrajectory, TrajectoryStep
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.text import escape_json

ATIF_VERSION = "ATIF-v1.7"

ATIF_IMAGES = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]+")
MAX_NAME_CHARACTERS = 64

Json = dict[str, Any]


def to_atif(trajectory: SessionTrajectory) -> Json:
    """Return a session as an ATIF trajectory, ready for JSON. Raises ValueError for a session without steps."""
    if not trajectory.steps:
        raise ValueError(f"session {trajectory.session_id} has no steps, and ATIF needs at least one")
    return _without_none(
        {
            "schema_version": ATIF_VERSION,
            "session_id": trajectory.session_id,
            "agent": _without_none(
                {"name": trajectory.agent, "version": trajectory.version, "model_name": trajectory.model}
            ),
            "steps": [_atif_step(number, step) for number, step in enumerate(trajectory.steps, 1)],
            "final_metrics": _final_metrics(trajectory),
            "extra": {"cwd": trajectory.cwd},
        }
    )


def to_openai(trajectory: SessionTrajectory) -> list[Json]:
    """Return a session as messages for OpenAI's chat completions, ready for JSON.

    The format has no thoughts and no error messages of the system, so they are left out. Each tool call is followed by
    a message with its result.
    """
    messages: list[Json] = []
    for step in trajectory.steps:
        if step.source == "user":
            messages.append({"role": "user", "content": _openai_content(step.blocks)})
        elif step.source == "agent" and (step.blocks or step.calls):
            message: Json = {"role": "assistant", "content": _text(step.blocks) or None}
            if step.calls:
                message["tool_calls"] = [_openai_call(call) for call in step.calls]
            messages.append(message)
            messages += [
                {"role": "tool", "tool_call_id": call.tool_call_id, "content": tool_result(call)} for call in step.calls
            ]
    return messages


def _atif_step(number: int, step: TrajectoryStep) -> Json:
    is_agent = step.source == "agent"
    extra = {"stop_reason": step.stop_reason} if step.stop_reason else None
    return _without_none(
        {
            "step_id": number,
            "timestamp": None if step.time_ms is None else _iso(step.time_ms),
            "source": step.source,
            "message": _atif_content(step.blocks),
            "reasoning_content": step.thought or None,
            "tool_calls": [_atif_call(call) for call in step.calls] or None,
            "observation": {"results": [_atif_result(call) for call in step.calls]} if step.calls else None,
            "metrics": _metrics(step.usage) if is_agent and step.usage else None,
            "is_copied_context": step.is_replayed or None,
            "extra": extra,
        }
    )


def _atif_call(call: ToolCallState) -> Json:
    return {
        "tool_call_id": call.tool_call_id,
        "function_name": tool_name(call),
        "arguments": tool_arguments(call),
        "extra": {"title": call.title, "kind": call.kind},
    }


def _atif_result(call: ToolCallState) -> Json:
    blocks = [item.content for item in call.content if isinstance(item, v1.Content)]
    has_picture = any(_is_atif_image(block) for block in blocks)
    return {
        "source_call_id": call.tool_call_id,
        "content": _atif_content(blocks) if has_picture else tool_result(call),
        "extra": {"status": call.status},
    }


def _atif_content(blocks: Iterable[v1.ContentBlock]) -> str | list[Json]:
    content = list(blocks)
    if not any(_is_atif_image(block) for block in content):
        return _text(content)
    return [_atif_part(block) for block in content]


def _atif_part(block: v1.ContentBlock) -> Json:
    if isinstance(block, v1.ImageContent) and _is_atif_image(block):
        return {"type": "image", "source": {"media_type": block.mime_type, "path": _data_url(block)}}
    return {"type": "text", "text": _block_text(block)}


def _is_atif_image(block: v1.ContentBlock) -> bool:
    return isinstance(block, v1.ImageContent) and block.mime_type in ATIF_IMAGES


def _metrics(usage: v1.Usage) -> Json:
    return _without_none(
        {
            "prompt_tokens": _prompt_tokens(usage),
            "completion_tokens": usage.output_tokens,
            "cached_tokens": usage.cached_read_tokens,
        }
    )


def _prompt_tokens(usage: v1.Usage) -> int:
    """Return all input tokens. Some agents count cached tokens separately, which the total reveals."""
    cached = (usage.cached_read_tokens or 0) + (usage.cached_write_tokens or 0)
    counted_apart = usage.input_tokens + usage.output_tokens + cached <= usage.total_tokens
    return usage.input_tokens + cached if counted_apart else usage.input_tokens


def _final_metrics(trajectory: SessionTrajectory) -> Json:
    used = [step.usage for step in trajectory.steps if step.usage is not None]
    cost = trajectory.cost
    return _without_none(
        {
            "total_prompt_tokens": sum(map(_prompt_tokens, used)) if used else None,
            "total_completion_tokens": sum(each.output_tokens for each in used) if used else None,
            "total_cached_tokens": sum(each.cached_read_tokens or 0 for each in used) if used else None,
            "total_cost_usd": cost.amount if cost is not None and cost.currency == "USD" else None,
            "total_steps": len(trajectory.steps),
        }
    )


def _openai_call(call: ToolCallState) -> Json:
    arguments = msgspec.json.encode(tool_arguments(call)).decode()
    return {
        "id": call.tool_call_id,
        "type": "function",
        "function": {"name": tool_name(call), "arguments": arguments},
    }


def _openai_content(blocks: Iterable[v1.ContentBlock]) -> str | list[Json]:
    content = list(blocks)
    if not any(isinstance(block, v1.ImageContent) for block in content):
        return _text(content)
    return [_openai_part(block) for block in content]


def _openai_part(block: v1.ContentBlock) -> Json:
    if isinstance(block, v1.ImageContent):
        return {"type": "image_url", "image_url": {"url": _data_url(block)}}
    return {"type": "text", "text": _block_text(block)}


def tool_name(call: ToolCallState) -> str:
    """Return the tool name of a call, with only the characters that function names allow."""
    name = _NOT_IN_NAMES.sub("_", call.name or "").strip("_") or call.kind
    return name[:MAX_NAME_CHARACTERS]


def tool_arguments(call: ToolCallState) -> Json:
    """Return the input of a call as an object."""
    if isinstance(call.raw_input, dict):
        return cast("Json", call.raw_input)
    return {} if call.raw_input is None else {"input": call.raw_input}


def tool_result(call: ToolCallState) -> str:
    """Return the output of a call as text: its content, or else its raw output."""
    parts = [_item_text(item) for item in call.content]
    if parts:
        return "\n".join(parts)
    if call.raw_output is None:
        return ""
    return call.raw_output if isinstance(call.raw_output, str) else encode(call.raw_output).decode()


def _item_text(item: v1.ToolCallContent) -> str:
    match item:
        case v1.Content(content=block):
            return _block_text(block)
        case v1.Diff(path=path, old_text=old, new_text=new):
            before = [] if old is None else old.splitlines(keepends=True)
            lines = difflib.unified_diff(before, new.splitlines(keepends=True), path if before else "/dev/null", path)
            return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
        case v1.Terminal(terminal_id=terminal_id):
            return f"[terminal {terminal_id}]"
        case _:
            return f"[{item.tag}]"


def _text(blocks: Iterable[v1.ContentBlock]) -> str:
    return "\n".join(_block_text(block) for block in blocks)


def _block_text(block: v1.ContentBlock) -> str:
    match block:
        case v1.TextContent(text=text):
            return text
        case v1.EmbeddedResource(resource=v1.TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case v1.EmbeddedResource(resource=v1.BlobResourceContents(uri=uri)):
            return f"[{uri}]"
        case v1.ResourceLink(uri=uri):
            return f"[{uri}]"
        case v1.ImageContent(mime_type=mime_type) | v1.AudioContent(mime_type=mime_type):
            return f"[{mime_type}]"
        case _:
            return f"[{getattr(block, 'tag', 'content of an unknown type')}]"


def _data_url(block: v1.ImageContent) -> str:
    return f"data:{block.mime_type};base64,{block.data}"


def _iso(time_ms: int) -> str:
    return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _without_none(members: Json) -> Json:
    return {name: value for name, value in members.items() if value is not None}


TRAJECTORY_FORMATS: dict[str, Callable[[SessionTrajectory], Any]] = {"atif": to_atif, "openai": to_openai}


class NothingToExportError(DragomanError):
    """No session has any steps."""

    def __init__(self) -> None:
        super().__init__("the session is empty, so there is nothing to export; choose a session with a prompt")


def write_trajectories(sessions: Sequence[SessionTrajectory], kind: str) -> str:
    """Return one session as a JSON document, or several as JSON Lines. Raises NothingToExportError."""
    convert = TRAJECTORY_FORMATS[kind]
    documents = [msgspec.json.encode(convert(session)) for session in sessions if session.steps]
    if not documents:
        raise NothingToExportError
    if len(documents) == 1:
        return escape_json(msgspec.json.format(documents[0], indent=2).decode()) + "\n"
    return "".join(f"{escape_json(document.decode())}\n" for document in documents)
