"""One reply of a model, passed on as it streams."""

import uuid
from typing import Any

from dragoman.agent.turns.model_request import FinishReason, ModelRequest
from dragoman.agent.turns.turn import Turn
from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.models.message import AssistantMessage, ProviderDetails, ToolUse
from dragoman.assistant.models.model import Part, ReplyRetry, ReplyStop, ReplyText, ReplyThought, ToolStart
from dragoman.assistant.tool_calls import ToolCallRunner
from dragoman.protocol import v1
from dragoman.protocol.void_message import void_chunk


class ModelReply:
    """The text, thoughts and tool uses of a reply so far."""

    def __init__(self, turn: Turn, calls: ToolCallRunner, traced: ModelRequest, *, thoughts: bool) -> None:
        self._turn = turn
        self._traced = traced
        self._calls = calls
        self._thoughts = thoughts
        self._message_id = str(uuid.uuid4())
        self._thought_id = str(uuid.uuid4())
        self._retries_id = str(uuid.uuid4())
        self._pieces: list[str] = []
        self._thought: list[str] = []
        self._provider: dict[str, Any] | None = None
        self.tool_uses: list[ToolUse] = []
        self.usage: TokenUsage | None = None
        self.stop: ReplyStop | None = None

    @property
    def has_begun(self) -> bool:
        """Whether the reply has content to remember."""
        return bool(self._pieces or self._thought or self.tool_uses)

    def say(self, text: str) -> v1.AgentMessageChunk:
        """Add text to the answer, and return the update that shows it."""
        if not self._pieces:
            self._turn.session.memory.message_count += 1
            self._traced.record_first_piece()
        self._pieces.append(text)
        return v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=self._message_id)

    async def add(self, part: Part) -> None:
        """Add a part of any kind. Raises LogError."""
        match part:
            case ReplyText(text):
                await self._turn.send(self.say(text))
            case ReplyThought(text):
                await self._think(text)
            case ToolStart(call_id, name):
                await self._calls.announce(call_id, name)
            case ToolUse():
                self.tool_uses.append(part)
            case TokenUsage():
                self.usage = part
            case ReplyStop():
                self.stop = part
            case ProviderDetails(data):
                self._provider = data
            case ReplyRetry():
                await self._start_over(part)

    def message(self) -> AssistantMessage:
        """Return the reply as the model should remember it."""
        return AssistantMessage("".join(self._pieces), "".join(self._thought), self.tool_uses, self._provider)

    def record_end(self) -> None:
        """Record in the trace how the reply ended."""
        reason: FinishReason = "tool_call" if self.tool_uses else "stop"
        if self.stop is not None:
            reason = "length" if self.stop.reason == "max_tokens" else "content_filter"
        self._traced.record_end(reason, "".join(self._pieces))

    async def _think(self, text: str) -> None:
        self._thought.append(text)
        if self._thoughts:
            block = v1.TextContent(text=text)
            await self._turn.send(v1.AgentThoughtChunk(content=block, message_id=self._thought_id))

    async def _start_over(self, retry: ReplyRetry) -> None:
        """Discard the text so far, and notify the user of the retry."""
        self._turn.calls.end("the model has to start over")
        if self._pieces:
            self._turn.session.memory.message_count -= 1
            await self._turn.send(void_chunk(self._message_id))
        self._pieces.clear()
        self._thought.clear()
        self.tool_uses.clear()
        self._message_id, self._thought_id = str(uuid.uuid4()), str(uuid.uuid4())
        await self._turn.notice(retry.message(), key=self._retries_id)
