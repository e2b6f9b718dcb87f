"""Rules about the open value lists of version 2: custom values start with an underscore.

Version 2 allows readers to accept unknown values, so the schema refuses none. But values without an underscore are
reserved for later versions, and must not be invented.
"""

import re
from collections.abc import Iterator
from typing import ClassVar, cast

from dragoman.check.judge.foreign_names import V1_UPDATES
from dragoman.check.judge.message import Json, Object, SeenMessage, text
from dragoman.check.judge.observer import Observer, watch
from dragoman.check.judge.rpc import extension_rule
from dragoman.check.rule import V2, Version

UPDATES = frozenset(
    {
        "agent_message",
        "agent_message_chunk",
        "agent_thought",
        "agent_thought_chunk",
        "available_commands_update",
        "compaction_summary_chunk",
        "compaction_update",
        "config_option_update",
        "notice",
        "plan_removed",
        "plan_update",
        "session_info_update",
        "session_message",
        "state_update",
        "subagent_update",
        "terminal_output_chunk",
        "terminal_update",
        "tool_call_content_chunk",
        "tool_call_update",
        "usage_update",
        "user_message",
        "user_message_chunk",
    }
)
BLOCKS = frozenset({"text", "image", "audio", "resource_link", "resource"})
CALL_CONTENT = frozenset({"content", "diff", "terminal"})
TOOL_KINDS = frozenset(
    {"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"}
)
CALL_STATUSES = frozenset({"pending", "in_progress", "paused", "completed", "failed", "cancelled"})
STATES = frozenset({"running", "idle", "requires_action"})
STOP_REASONS = frozenset({"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"})
OPERATIONS = frozenset({"add", "delete", "modify", "move", "copy"})
FILE_TYPES = frozenset({"text", "binary", "directory", "symlink"})
OPTION_KINDS = frozenset({"allow_once", "allow_always", "reject_once", "reject_always"})

_CALL = (
    ("kind", TOOL_KINDS),
    ("status", CALL_STATUSES),
    ("content[].type", CALL_CONTENT),
    ("content[].content.type", BLOCKS),
    ("content[].changes[].operation", OPERATIONS),
    ("content[].changes[].fileType", FILE_TYPES),
    ("content[].patch.format", frozenset({"git_patch"})),
)
PLACES: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("update .*", "update.sessionUpdate", UPDATES),
    ("update state_update", "update.state", STATES),
    ("update state_update", "update.stopReason", STOP_REASONS),
    ("update state_update", "update.background[].type", frozenset({"terminal", "tool_call"})),
    *(("update tool_call_update", f"update.{place}", values) for place, values in _CALL),
    ("update tool_call_content_chunk", "update.content.type", CALL_CONTENT),
    ("update tool_call_content_chunk", "update.content.content.type", BLOCKS),
    ("update (user|agent)_(message|thought)", "update.content[].type", BLOCKS),
    ("update (user|agent)_(message|thought)_chunk", "update.content.type", BLOCKS),
    ("update plan_update", "update.plan.type", frozenset({"items", "markdown", "file"})),
    ("update plan_update", "update.plan.entries[].priority", frozenset({"high", "medium", "low"})),
    (
        "update plan_update",
        "update.plan.entries[].status",
        frozenset({"pending", "in_progress", "completed", "cancelled"}),
    ),
    ("update notice", "update.severity", frozenset({"info", "warning", "error"})),
    ("update compaction_update", "update.status", frozenset({"in_progress", "completed", "failed", "cancelled"})),
    ("request session/request_permission", "subject.type", frozenset({"tool_call", "command"})),
    ("request session/request_permission", "options[].kind", OPTION_KINDS),
    *(("request session/request_permission", f"subject.toolCall.{place}", values) for place, values in _CALL),
    ("result session/request_permission", "outcome.outcome", frozenset({"selected", "cancelled"})),
    ("result initialize", "authMethods[].type", frozenset({"agent", "terminal"})),
    ("request session/prompt", "prompt[].type", BLOCKS),
    ("request session/(new|resume)", "mcpServers[].type", frozenset({"stdio", "http", "acp"})),
    ("request session/resume", "replayFrom.type", frozenset({"start"})),
)
"""Kinds of messages, places in them, and the values that the specification defines there."""


class OpenValueObserver(Observer):
    """Judges values of open lists."""

    area: ClassVar[str] = "EXT"
    versions: ClassVar[tuple[Version, ...]] = V2

    @watch("update", "request", "result")
    def on_message(self, message: SeenMessage) -> None:
        is_update = message.kind == "notification"
        key = f"update {text(message.update, 'sessionUpdate')}" if is_update else f"{message.kind} {message.method}"
        rule = extension_rule(message.sender, 6)
        for kind, place, allowed in PLACES:
            if not re.fullmatch(kind, key):
                continue
            for value in find_values(message.params, place):
                self.judge(
                    rule,
                    value in allowed or value.startswith("_"),
                    f"{place} is {value!r}{_explain(place, value)}; expected one of {sorted(allowed)}, or one that "
                    "begins with an underscore",
                    message.entry,
                )


def _explain(place: str, value: str) -> str:
    return ", which is of version 1" if place == "update.sessionUpdate" and value in V1_UPDATES else ""


def find_values(value: Json, place: str) -> Iterator[str]:
    """Yield the strings at a place such as `options[].kind`."""
    name, _, rest = place.partition(".")
    found: Json = _get(value, name.removesuffix("[]"))
    listed = cast("list[Json]", found) if name.endswith("[]") and isinstance(found, list) else [found]
    for each in listed:
        if rest:
            yield from find_values(each, rest)
        elif isinstance(each, str):
            yield each


def _get(value: Json, name: str) -> Json:
    return cast("Object", value).get(name) if isinstance(value, dict) else None
