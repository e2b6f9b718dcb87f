"""Reads the conversation of a session from its log, as the messages that a model needs to remember it."""

from itertools import groupby
from typing import Any, Literal

import msgspec

from dragoman.protocol import v1
from dragoman.protocol.update_lines import decode_update_line
from dragoman.protocol.void_message import is_void
from dragoman.store import History


class HistoryToolCall(msgspec.Struct):
    """A tool call of the conversation, in its last state."""

    id: str
    title: str = ""
    name: str | None = None
    kind: str = "other"
    status: str = "pending"
    raw_input: Any = None
    raw_output: Any = None
    content: list[v1.ToolCallContent] = []

    @property
    def text(self) -> str:
        """The text that the call has shown."""
        blocks = [part.content for part in self.content if isinstance(part, v1.Content)]
        return "\n".join(block.text for block in blocks if isinstance(block, v1.TextContent))


class HistoryMessage(msgspec.Struct):
    """One message of the conversation: by the user, by the agent, a thought of the agent, or a tool call."""

    role: Literal["user", "agent", "thought", "tool"]
    content: list[v1.ContentBlock] = []
    tool_call: HistoryToolCall | None = None
    """Set for the role `tool`."""
    message_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message. For a tool call, the text that it has shown."""
        if self.tool_call is not None:
            return self.tool_call.text
        return "".join(block.text for block in self.content if isinstance(block, v1.TextContent))


_WANTED = (b'"user_message_chunk"', b'"agent_message_chunk"', b'"agent_thought_chunk"', b'"tool_call')
_ROLES: dict[type, Literal["user", "agent", "thought"]] = {
    v1.UserMessageChunk: "user",
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
}


async def read_conversation(log: History, *, without_running_turn: bool) -> list[HistoryMessage]:
    """Return the messages of a log in order, without withdrawn messages. Raises LogError.

    `without_running_turn` omits everything after the last start of a turn.
    """
    # Most lines are updates without messages, so a search for the relevant kinds avoids decoding them.
    conversation = _Conversation()
    async for blocks in log.blocks():
        for block in blocks:
            for _, line in block.numbered_lines():
                if line.startswith(b'{"turn":{"event":"start"'):
                    conversation.begin_turn()
                elif line.startswith(b'{"jsonrpc":') and any(wanted in line for wanted in _WANTED):
                    conversation.apply(decode_update_line(line).update)
    if without_running_turn:
        conversation.drop_last_turn()
    for message in conversation.messages:
        if message.role in ("agent", "thought"):
            message.content = _join_texts(message.content)
    return conversation.messages


class _Conversation:
    """Assembles messages from updates."""

    def __init__(self) -> None:
        self.messages: list[HistoryMessage] = []
        self._calls: dict[str, HistoryToolCall] = {}
        self._turn_began = 0

    def begin_turn(self) -> None:
        self._turn_began = len(self.messages)

    def drop_last_turn(self) -> None:
        del self.messages[self._turn_began :]

    def apply(self, update: v1.SessionUpdate) -> None:
        match update:
            case v1.AgentMessageChunk() if is_void(update):
                self.messages = [each for each in self.messages if each.message_id != update.message_id]
                self._turn_began = min(self._turn_began, len(self.messages))
            case v1.UserMessageChunk() | v1.AgentMessageChunk() | v1.AgentThoughtChunk():
                self._add(_ROLES[type(update)], update.message_id, update.content)
            case v1.ToolCall():
                call = self._calls[update.tool_call_id] = HistoryToolCall(update.tool_call_id)
                self.messages.append(HistoryMessage("tool", tool_call=call))
                _merge(call, update)
            case v1.ToolCallProgress():
                if (known := self._calls.get(update.tool_call_id)) is not None:
                    _merge(known, update)
            case _:
                pass

    def _add(self, role: Literal["user", "agent", "thought"], message_id: str | None, block: v1.ContentBlock) -> None:
        last = self.messages[-1] if self.messages else None
        if last is None or last.role != role or last.message_id != message_id:
            last = HistoryMessage(role, [], message_id=message_id)
            self.messages.append(last)
        last.content.append(block)


def _join_texts(blocks: list[v1.ContentBlock]) -> list[v1.ContentBlock]:
    """Return the blocks with adjacent texts joined."""
    joined: list[v1.ContentBlock] = []
    for is_text, group in groupby(blocks, lambda block: isinstance(block, v1.TextContent)):
        together = list(group)
        if is_text and len(together) > 1:
            text = "".join(block.text for block in together if isinstance(block, v1.TextContent))
            together = [v1.TextContent(text=text)]
        joined += together
    return joined


_FIELDS = ("title", "name", "kind", "status", "raw_input", "raw_output", "content")


def _merge(call: HistoryToolCall, update: v1.ToolCall | v1.ToolCallProgress) -> None:
    for field in _FIELDS:
        value = getattr(update, field, None)
        if value is not None and value is not msgspec.UNSET:
            setattr(call, field, value)
