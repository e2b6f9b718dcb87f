"""A turn: from a prompt to its stop reason, streaming what happens in between."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable

from dragoman.agent.models.model import Conversation, Part, Stop, Text, Thought, ToolUse, Usage
from dragoman.protocol import v1

MAX_MODEL_REQUESTS = 50
"""Model requests in one turn before it stops with `max_turn_requests`: a model that runs in circles costs money."""

Send = Callable[[v1.SessionUpdate], Awaitable[None]]


class Turn:
    """One prompt being answered; `cancel` ends it at any point, and it then answers `cancelled`."""

    def __init__(self, conversation: Conversation, send: Send) -> None:
        self._conversation = conversation
        self._send = send
        self._used = Usage(0, 0)
        self._cancelled = False
        self._task: asyncio.Task[object] | None = None

    async def run(self) -> v1.PromptResponse:
        """Run to the end; raises ModelFailure."""
        self._task = asyncio.current_task()
        try:
            reason = await self._run()
        except asyncio.CancelledError:
            if not self._cancelled or self._task is None:
                raise
            self._task.uncancel()
            reason = "cancelled"
        return v1.PromptResponse(stop_reason=reason, usage=self._usage())

    def cancel(self) -> None:
        """Stop at once."""
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    async def _run(self) -> v1.StopReason:
        for _ in range(MAX_MODEL_REQUESTS):
            reply = _Reply(self._send)
            async for part in self._conversation.reply():
                await reply.take(part)
            await self._count(reply.usage)
            if reply.stop is not None:
                return reply.stop.reason
            if not reply.tool_uses:
                return "end_turn"
            for tool_use in reply.tool_uses:
                await self._use(tool_use)
        return "max_turn_requests"

    async def _use(self, tool_use: ToolUse) -> None:
        call_id = f"call-{uuid.uuid4()}"
        await self._send(
            v1.ToolCall(
                tool_call_id=call_id,
                title=tool_use.name,
                kind="other",
                status="pending",
                raw_input=tool_use.arguments,
            )
        )
        problem = v1.Content(content=v1.TextContent(text=f"there is no tool named {tool_use.name} here"))
        await self._send(v1.ToolCallProgress(tool_call_id=call_id, status="failed", content=[problem]))

    async def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self._used = Usage(self._used.input + usage.input, self._used.output + usage.output)
        await self._send(v1.UsageUpdate(used=usage.input + usage.output, size=self._conversation.context_size))

    def _usage(self) -> v1.Usage | None:
        spent = self._used
        if not (spent.input or spent.output):
            return None
        return v1.Usage(total_tokens=spent.input + spent.output, input_tokens=spent.input, output_tokens=spent.output)


class _Reply:
    """One reply of the model, sent on as it comes."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._message_id = str(uuid.uuid4())
        self._thought_id = str(uuid.uuid4())
        self.tool_uses: list[ToolUse] = []
        self.usage: Usage | None = None
        self.stop: Stop | None = None

    async def take(self, part: Part) -> None:
        match part:
            case Text(text):
                block = v1.TextContent(text=text)
                await self._send(v1.AgentMessageChunk(content=block, message_id=self._message_id))
            case Thought(text):
                block = v1.TextContent(text=text)
                await self._send(v1.AgentThoughtChunk(content=block, message_id=self._thought_id))
            case ToolUse():
                self.tool_uses.append(part)
            case Usage():
                self.usage = part
            case Stop():
                self.stop = part
