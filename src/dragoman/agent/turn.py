"""A turn: from a prompt to its stop reason, streaming and logging what happens in between."""

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from dragoman.agent.models.message import AssistantMessage, ToolMessage, ToolResult, ToolUse, UserMessage
from dragoman.agent.models.model import ModelRequest, Part, Stop, Text, Thought, Usage
from dragoman.agent.session import Session, turn_end
from dragoman.errors import LogFailed
from dragoman.protocol import v1
from dragoman.protocol.decode import encode
from dragoman.store import Store

MAX_MODEL_REQUESTS = 50
"""Model requests in one turn before it stops with `max_turn_requests`: a model that runs in circles costs money."""

MAX_TITLE_LENGTH = 80

Send = Callable[[v1.SessionUpdate], Awaitable[None]]


class Turn:
    """One prompt being answered; `cancel` ends it at any point, and it then answers `cancelled`."""

    def __init__(self, session: Session, store: Store) -> None:
        self._session = session
        self._store = store
        self._outlet = session.outlet
        self._used = Usage(0, 0)
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None

    async def run(self, blocks: list[v1.ContentBlock]) -> v1.PromptResponse:
        """Run to the end; raises ModelFailure and LogFailed."""
        try:
            reason = await self._run(blocks)
        except BaseException as error:
            with suppress(LogFailed):  # there may be no log to write it to: that may be the very error
                self._record_end("cancelled" if isinstance(error, asyncio.CancelledError) else "failed")
            raise
        self._record_end(reason)
        if self._session.log is not None:
            await self._session.log.sync()
        return v1.PromptResponse(stop_reason=reason, usage=self._usage())

    def cancel(self) -> None:
        """Stop at once."""
        if self._task is not None and not self._cancelled:
            self._cancelled = True
            self._task.cancel()

    async def _run(self, blocks: list[v1.ContentBlock]) -> v1.StopReason:
        task = self._task = asyncio.current_task()
        try:
            await _to_the_end(self._begin(blocks))
            return await self._converse()
        except asyncio.CancelledError:
            if not self._cancelled or task is None:
                raise
            task.uncancel()
            return "cancelled"

    async def _begin(self, blocks: list[v1.ContentBlock]) -> None:
        """Log the prompt; the client that sent it is not sent it back."""
        session = self._session
        if session.log is None:
            self._outlet.log = await self._store.create(session.header)
            session.record_settings()
        self._outlet.record("turn", _START)
        message_id = str(uuid.uuid4())
        for block in blocks:
            self._outlet.record("update", encode(v1.UserMessageChunk(content=block, message_id=message_id)))
        session.remember(UserMessage(blocks))
        if session.title is None:
            await session.entitle(_title(blocks))
        await session.show_notices()

    async def _converse(self) -> v1.StopReason:
        for _ in range(MAX_MODEL_REQUESTS):
            reply = _Reply(self._outlet.send, thoughts=self._session.settings.thoughts)
            try:
                async for part in self._session.conversation.reply(ModelRequest(self._session.messages)):
                    await reply.take(part)
            finally:
                self._session.remember(reply.message())
            await self._count(reply.usage)
            if reply.stop is not None:
                return reply.stop.reason
            if not reply.tool_uses:
                return "end_turn"
            self._session.remember(ToolMessage([await self._use(tool_use) for tool_use in reply.tool_uses]))
        return "max_turn_requests"

    async def _use(self, tool_use: ToolUse) -> ToolResult:
        await self._outlet.send(
            v1.ToolCall(
                tool_call_id=tool_use.id,
                title=tool_use.name,
                kind="other",
                status="pending",
                raw_input=tool_use.arguments,
            )
        )
        problem = f"there is no tool named {tool_use.name} here"
        content = v1.Content(content=v1.TextContent(text=problem))
        await self._outlet.send(v1.ToolCallProgress(tool_call_id=tool_use.id, status="failed", content=[content]))
        return ToolResult(tool_use.id, problem, failed=True)

    async def _count(self, usage: Usage | None) -> None:
        if usage is None:
            return
        self._used = Usage(self._used.input + usage.input, self._used.output + usage.output)
        size = self._session.model.context_size
        await self._outlet.send(v1.UsageUpdate(used=usage.input + usage.output, size=size))

    def _usage(self) -> v1.Usage | None:
        spent = self._used
        if not (spent.input or spent.output):
            return None
        return v1.Usage(total_tokens=spent.input + spent.output, input_tokens=spent.input, output_tokens=spent.output)

    def _record_end(self, outcome: str) -> None:
        session = self._session
        if session.log is not None:
            session.log.title, session.log.message_count = session.title, session.message_count
        self._outlet.record("turn", turn_end(session, outcome))
        self._outlet.flush()


_START = b'{"event":"start"}'


class _Reply:
    """One reply of the model, sent on as it comes."""

    def __init__(self, send: Send, *, thoughts: bool) -> None:
        self._send = send
        self._thoughts = thoughts
        self._message_id = str(uuid.uuid4())
        self._thought_id = str(uuid.uuid4())
        self._said: list[str] = []
        self._thought: list[str] = []
        self.tool_uses: list[ToolUse] = []
        self.usage: Usage | None = None
        self.stop: Stop | None = None

    async def take(self, part: Part) -> None:
        match part:
            case Text(text):
                self._said.append(text)
                block = v1.TextContent(text=text)
                await self._send(v1.AgentMessageChunk(content=block, message_id=self._message_id))
            case Thought(text):
                self._thought.append(text)
                if self._thoughts:
                    block = v1.TextContent(text=text)
                    await self._send(v1.AgentThoughtChunk(content=block, message_id=self._thought_id))
            case ToolUse():
                self.tool_uses.append(part)
            case Usage():
                self.usage = part
            case Stop():
                self.stop = part
            case _:
                pass

    def message(self) -> AssistantMessage:
        """Return the reply as the model shall remember it."""
        return AssistantMessage("".join(self._said), "".join(self._thought), self.tool_uses)


def _title(blocks: list[v1.ContentBlock]) -> str:
    for block in blocks:
        if isinstance(block, v1.TextContent) and block.text.strip():
            line = " ".join(block.text.split())
            return line if len(line) <= MAX_TITLE_LENGTH else f"{line[: MAX_TITLE_LENGTH - 1].rstrip()}…"
    return "Untitled"


async def _to_the_end(work: Awaitable[None]) -> None:
    """Wait for work that must not stop half-way; a cancellation meanwhile is raised when it is done."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is not None:
            raise task.exception() from None  # pyright: ignore[reportGeneralTypeIssues] -- it is not None
        raise
