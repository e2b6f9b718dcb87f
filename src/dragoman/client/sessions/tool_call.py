"""The state of a tool call: its announcement with all later updates merged into it."""

from typing import Any

import msgspec

from dragoman.protocol import v1


class ToolCallState(msgspec.Struct, frozen=True):
    """A snapshot of a tool call. Each update creates a new one."""

    tool_call_id: str
    title: str = ""
    kind: v1.ToolKind = "other"
    status: v1.ToolCallStatus = "pending"
    content: tuple[v1.ToolCallContent, ...] = ()
    locations: tuple[v1.ToolCallLocation, ...] = ()
    raw_input: Any = None
    raw_output: Any = None
    name: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether the call has completed or failed."""
        return self.status in ("completed", "failed")


def merge(before: ToolCallState | None, update: v1.ToolCall | v1.ToolCallUpdate) -> ToolCallState:
    """Return a call with an update merged into it. Missing and null fields leave the value unchanged."""
    state = before or ToolCallState(update.tool_call_id)
    announces = isinstance(update, v1.ToolCall)
    # An update replaces the content, even with an empty list. A repeated announcement may just lack it.
    content = update.content if not announces or update.content else None
    locations = update.locations if not announces or update.locations else None
    return ToolCallState(
        update.tool_call_id,
        title=update.title or state.title,
        kind=update.kind or state.kind,
        status=update.status or state.status,
        content=state.content if content is None else tuple(content),
        locations=state.locations if locations is None else tuple(locations),
        raw_input=state.raw_input if update.raw_input is None else update.raw_input,
        raw_output=state.raw_output if update.raw_output is None else update.raw_output,
        name=update.name or state.name,
    )
