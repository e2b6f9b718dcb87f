"""The conversation of a session as messages, read from its log: what a model needs to remember it."""

from typing import Any, Literal

import msgspec

from dragoman.protocol import v1
from dragoman.protocol.notice import is_void
from dragoman.protocol.unions import decode_hook
from dragoman.store import Log


class ToolCallMemory(msgspec.Struct):
    """A tool call of the conversation, with its last state."""

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
    """One message of the conversation: of the person, of the agent, a thought of the agent, or a tool call."""

    role: Literal["user", "agent", "thought", "tool"]
    content: list[v1.ContentBlock] = []
    tool_call: ToolCallMemory | None = None
    """There for the role `tool`."""
    message_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message; of a tool call, the text that it has shown."""
        if self.tool_call is not None:
            return self.tool_call.text
        return "".join(block.text for block in self.content if isinstance(block, v1.TextContent))


class _Params(msgspec.Struct):
    update: v1.SessionUpdate


class _Line(msgspec.Struct):
    params: _Params


_decode = msgspec.json.Decoder(_Line, dec_hook=decode_hook).decode
_WANTED = (b'"user_message_chunk"', b'"agent_message_chunk"', b'"agent_thought_chunk"', b'"tool_call')
_ROLES: dict[type, Literal["user", "agent", "thought"]] = {
    v1.UserMessageChunk: "user",
    v1.AgentMessageChunk: "agent",
    v1.AgentThoughtChunk: "thought",
}


async def read_conversation(log: Log, *, without_running_turn: bool) -> list[HistoryMessage]:
    """Return the messages of a log, in order; messages that were withdrawn are left out. Raises LogFailed.

    `without_running_turn` leaves out all that came after the last start of a turn.
    """
    conversation = _Conversation()
    async for blocks in log.blocks():
        for block in blocks:
            for _, line in block.numbered_lines():
                if line.startswith(b'{"turn":{"event":"start"'):
                    conversation.begin_turn()
                elif line.startswith(b'{"jsonrpc":') and any(wanted in line for wanted in _WANTED):
                    conversation.take(_decode(line).params.update)
    if without_running_turn:
        conversation.drop_last_turn()
    return conversation.messages


class _Conversation:
    """Puts the messages together."""

    def __init__(self) -> None:
        self.messages: list[HistoryMessage] = []
        self._calls: dict[str, ToolCallMemory] = {}
        self._turn_began = 0

    def begin_turn(self) -> None:
        self._turn_began = len(self.messages)

    def drop_last_turn(self) -> None:
        del self.messages[self._turn_began :]

    def take(self, update: v1.SessionUpdate) -> None:
        match update:
            case v1.AgentMessageChunk() if is_void(update):
                self.messages = [each for each in self.messages if each.message_id != update.message_id]
                self._turn_began = min(self._turn_began, len(self.messages))
            case v1.UserMessageChunk() | v1.AgentMessageChunk() | v1.AgentThoughtChunk():
                self._add(_ROLES[type(update)], update.message_id, update.content)
            case v1.ToolCall():
                call = self._calls[update.tool_call_id] = ToolCallMemory(update.tool_call_id)
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
        before = last.content[-1] if last.content else None
        if isinstance(before, v1.TextContent) and isinstance(block, v1.TextContent) and role != "user":
            last.content[-1] = v1.TextContent(text=before.text + block.text)
        else:
            last.content.append(block)


_FIELDS = ("title", "name", "kind", "status", "raw_input", "raw_output", "content")


def _merge(call: ToolCallMemory, update: v1.ToolCall | v1.ToolCallProgress) -> None:
    for field in _FIELDS:
        value = getattr(update, field, None)
        if value is not None and value is not msgspec.UNSET:
            setattr(call, field, value)
