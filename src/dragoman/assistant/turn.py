"""A turn: from a prompt to its stop reason; everything in between is streamed and logged."""

import asyncio
import uuid
from contextlib import aclosing, suppress
from typing import Any

from dragoman.assistant.attachments import resolve
from dragoman.assistant.commands import CommandRegistry, ContinueWithModel
from dragoman.assistant.commands.registry import names_prompt, run_command
from dragoman.assistant.compaction import FULL, compact
from dragoman.assistant.instructions import instructions_for
from dragoman.assistant.model_reply import ModelReply
from dragoman.assistant.models.message import ToolMessage, UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyText, TokenUsage
from dragoman.assistant.prompt_words import unwrap
from dragoman.assistant.session import Session, turn_end
from dragoman.assistant.tool_calls import ToolCallRunner
from dragoman.assistant.trust_question import ask_for_trust
from dragoman.cancellation import finish
from dragoman.errors import ConnectionClosed, ContextOverflow, LogFailed, ModelFailure
from dragoman.protocol import v1
from dragoman.text import one_line

MAX_TITLE_LENGTH = 80

_START = b'{"event":"start"}'


class Turn:
    """One prompt being answered; `cancel` ends it at any point, and it then answers `cancelled`."""

    def __init__(self, session: Session, commands: CommandRegistry) -> None:
        self._session = session
        self._commands = commands
        self._updates = session.updates
        self._calls: ToolCallRunner | None = None
        self._prompt: list[v1.ContentBlock] = []
        self._spent_before = session.spent
        self._output_tokens = 0
        self._cancelled = False
        self._task: asyncio.Task[Any] | None = None

    async def run(self, blocks: list[v1.ContentBlock]) -> v1.PromptResponse:
        """Run to the end; raises ModelFailure and LogFailed."""
        try:
            reason = await self._run(blocks)
        except asyncio.CancelledError:
            raise  # the connection is closing; the next load of the session finds the turn unfinished and ends it
        except BaseException:
            with suppress(LogFailed, ConnectionClosed):  # the client may be gone, which may be the very error
                self._end_calls("the turn failed")
                self._record_end("failed")
            raise
        self._record_end(reason)
        await self._session.log.sync()
        return v1.PromptResponse(stop_reason="cancelled" if self._cancelled else reason, usage=self._usage())

    def cancel(self) -> None:
        """Stop at once; of a turn that is done, but for the disk, only the answer changes."""
        if self._task is not None and not self._cancelled:
            self._task.cancel()
        self._cancelled = True

    async def _run(self, blocks: list[v1.ContentBlock]) -> v1.StopReason:
        task = self._task = asyncio.current_task()
        try:
            try:
                return await self._answer(blocks)
            finally:
                self._task = None
        except asyncio.CancelledError:
            if not self._cancelled or task is None:
                raise
            task.uncancel()
            self._end_calls("cancelled")
            return "cancelled"
        except ModelFailure:
            self._end_calls("the model failed")
            raise

    async def _answer(self, blocks: list[v1.ContentBlock]) -> v1.StopReason:
        session = self._session
        beginning = asyncio.ensure_future(self._begin(blocks))
        try:
            await finish(beginning)
        except asyncio.CancelledError:
            beginning.result()  # a log that cannot be written is an error, and no cancelled turn
            raise
        await ask_for_trust(session)
        session.show_notices()
        if names_prompt(blocks):
            await self._wait_for_servers()
        unknown = self._commands.unknown(session, blocks)
        if unknown is not None:
            await self._say(unknown)
            return "end_turn"
        asked = self._commands.find(session, blocks)
        if asked is None:
            await self._set_title(blocks)
            self._prompt = await resolve(blocks, session.workspace, session.model.takes)
            session.remember(UserMessage(self._prompt))
        else:
            answer = await run_command(asked[0], session, asked[1])
            if not isinstance(answer, ContinueWithModel):
                await self._say(answer)
                return "end_turn"
            for message in answer.messages:
                session.remember(message)
                self._prompt = message.content if isinstance(message, UserMessage) else []
        await self._gather(blocks)
        self._calls = ToolCallRunner(session.updates, session.permission())
        return await self._converse(self._calls)

    async def _gather(self, blocks: list[v1.ContentBlock]) -> None:
        """Get the tools, rules and references ready, which go to the model beside the conversation."""
        await self._wait_for_servers()
        await self._session.context.begin_turn(blocks)
        self._session.show_notices()

    async def _wait_for_servers(self) -> None:
        session = self._session
        await session.servers.wait(session.profile.limits.mcp_wait_s, session.notify)

    async def _begin(self, blocks: list[v1.ContentBlock]) -> None:
        """Log the prompt; the client that sent it is not sent it back."""
        session = self._session
        self._updates.record("turn", _START)
        message_id = str(uuid.uuid4())
        for block in blocks:
            self._updates.record_update(v1.UserMessageChunk(content=block, message_id=message_id))
        if not names_prompt(blocks) and not self._commands.names_command(session, blocks):
            await self._set_title(blocks)

    async def _set_title(self, blocks: list[v1.ContentBlock]) -> None:
        """Make the first prompt that is no command the title."""
        if self._session.title is None:
            await self._session.set_title(_title(blocks))

    async def _converse(self, calls: ToolCallRunner) -> v1.StopReason:
        limits = self._session.profile.limits
        instructions = await self._instructions()
        for _ in range(limits.turn_requests):
            if self._session.context_used > FULL * self._session.model.context_size:
                await self._compact()
            reply = await self._request(calls, instructions)
            if reply.stop is not None:
                return reply.stop.reason
            if not reply.tool_uses:
                return "end_turn"
            self._session.remember(ToolMessage(await calls.run(reply.tool_uses)))
            if limits.output_tokens is not None and self._output_tokens >= limits.output_tokens:
                return "max_tokens"
        return "max_turn_requests"

    async def _instructions(self) -> str:
        session = self._session
        own = [session.profile.instructions, session.context.instructions()]
        return await instructions_for(session.workspace, "\n\n".join(part for part in own if part.strip()))

    async def _request(self, calls: ToolCallRunner, instructions: str) -> ModelReply:
        """Ask the model once, and once more with less to read when it was too much."""
        try:
            return await self._stream(calls, instructions)
        except ContextOverflow:
            self._end_calls("the conversation was too long")
            await self._compact()
            return await self._stream(calls, instructions)

    async def _stream(self, calls: ToolCallRunner, instructions: str) -> ModelReply:
        session, updates = self._session, self._updates
        calls.tools = await session.context.tools()
        request = ModelRequest(
            messages=session.messages,
            tools=[tool.definition for tool in calls.tools.values()],
            instructions=instructions,
            max_output_tokens=session.profile.limits.output_tokens,
            thought_level=session.settings.thought_level,
        )
        reply = ModelReply(updates, calls, session.notify, thoughts=session.settings.thoughts)
        try:
            async with aclosing(session.conversation.reply(request)) as parts:
                async for part in parts:
                    # Nearly all parts are text: a match and two coroutines would take half of the time of each.
                    if not isinstance(part, ReplyText):
                        await reply.take(part)
                    elif updates.put(reply.say(part.text)):
                        await updates.flow()
        finally:
            if reply.has_begun:
                session.remember(reply.message())
        await self._count(reply.usage)
        return reply

    async def _compact(self) -> None:
        """Sum up, and say so: the model no longer has the words themselves."""
        before = len(self._session.messages)
        await compact(self._session, self._prompt)
        self._session.notify(f"The conversation, {before} messages, was summed up to make room.")

    async def _count(self, usage: TokenUsage | None) -> None:
        if usage is None:
            return
        session = self._session
        self._output_tokens += usage.output
        session.count(usage)
        session.context_used = usage.input + usage.output
        cost = None if session.spent.cost_usd is None else v1.Cost(amount=session.spent.cost_usd, currency="USD")
        await self._updates.send(v1.UsageUpdate(used=session.context_used, size=session.model.context_size, cost=cost))

    async def _say(self, text: str) -> None:
        chunk = v1.AgentMessageChunk(content=v1.TextContent(text=text), message_id=str(uuid.uuid4()))
        await self._updates.send(chunk)

    def _end_calls(self, reason: str) -> None:
        if self._calls is not None:
            self._calls.end_open(reason)

    def _usage(self) -> v1.Usage | None:
        """Return the tokens of the turn, those of summaries and of servers' questions to the model included."""
        now, before = self._session.spent, self._spent_before
        took_in, made = now.input - before.input, now.output - before.output
        if not (took_in or made):
            return None
        return v1.Usage(
            total_tokens=took_in + made,
            input_tokens=took_in,
            output_tokens=made,
            thought_tokens=now.thought - before.thought or None,
            cached_read_tokens=now.cached_read - before.cached_read or None,
            cached_write_tokens=now.cached_write - before.cached_write or None,
        )

    def _record_end(self, outcome: str) -> None:
        session = self._session
        session.log.title, session.log.message_count = session.title, session.message_count
        self._updates.record("turn", turn_end(session, outcome))
        self._updates.flush()


def _title(blocks: list[v1.ContentBlock]) -> str:
    for block in unwrap(blocks):
        if isinstance(block, v1.TextContent) and block.text.strip():
            return one_line(block.text, MAX_TITLE_LENGTH)
    return "Untitled"
