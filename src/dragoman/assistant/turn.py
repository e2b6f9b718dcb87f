"""The turn loop of our agent: the model is asked, its tools are called, until it is done."""

from collections.abc import Sequence
from contextlib import aclosing

from dragoman.agent.turn import Turn
from dragoman.assistant.attachments import resolve
from dragoman.assistant.compaction import FULL, compact
from dragoman.assistant.instructions import instructions_for
from dragoman.assistant.model_reply import ModelReply
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, UserMessage
from dragoman.assistant.models.model import ModelRequest, ReplyText, TokenUsage
from dragoman.assistant.options import THOUGHT_LEVEL, THOUGHTS
from dragoman.assistant.resource_mentions import find_resource_mentions, read_mentions
from dragoman.assistant.session import AssistantSession
from dragoman.assistant.tool_calls import ToolCallRunner
from dragoman.errors import ContextOverflow
from dragoman.protocol import v1


class ModelTurn:
    """One prompt that the model answers."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._own: AssistantSession = turn.session.extra
        self._calls = ToolCallRunner(turn)
        self._prompt: list[v1.ContentBlock] = []
        self._output_tokens = 0

    async def run(self) -> v1.StopReason:
        """Run to the end; raises ModelFailure and LogFailed."""
        await self._take_prompt()
        await self._gather()
        return await self._converse()

    async def _take_prompt(self) -> None:
        """Let the model remember the prompt, with the files that it links to; a server's may have several messages."""
        turn, memory = self._turn, self._own.memory
        if turn.mcp_prompt is None:
            blocks = [*turn.prompt, *await self._mentioned(), *self._changed()]
            self._prompt = await resolve(blocks, turn.session.workspace, self._own.model.takes)
            memory.remember(UserMessage(self._prompt))
            return
        for message in turn.mcp_prompt:
            if message.role == "user":
                self._prompt = [message.content]
                memory.remember(UserMessage(self._prompt))
            elif isinstance(message.content, v1.TextContent):
                memory.remember(AssistantMessage(message.content.text))

    async def _mentioned(self) -> Sequence[v1.ContentBlock]:
        """Return the resources of servers that the prompt mentions, and tell of those that could not be read."""
        session = self._turn.session
        mentions = find_resource_mentions(self._turn.prompt)
        if not mentions:
            return ()
        await session.mcp.wait(session.notice)
        found = await read_mentions(mentions, session.mcp)
        for problem in found.problems:
            session.notice(problem, "warning")
        return found.blocks

    def _changed(self) -> list[v1.ContentBlock]:
        """Tell the model which resources it should not rely on any more."""
        changed = self._turn.session.mcp.resources.take_changed()
        lines = [f"[The resource {uri} of {server} may have changed since it was read.]" for server, uri in changed]
        return [v1.TextContent(text="\n".join(lines))] if lines else []

    async def _gather(self) -> None:
        """Get the tools, rules and references ready, which go to the model beside the conversation."""
        await self._turn.mcp_tools()
        await self._own.context.begin_turn(self._turn.prompt)
        self._own.show_notices()

    async def _converse(self) -> v1.StopReason:
        own, limits = self._own, self._own.profile.limits
        instructions = await self._instructions()
        for _ in range(limits.turn_requests):
            if own.memory.context_used > FULL * own.model.context_size:
                await compact(self._turn, self._prompt)
            reply = await self._request(instructions)
            if reply.stop is not None:
                return reply.stop.reason
            if not reply.tool_uses:
                return "end_turn"
            own.memory.remember(ToolMessage(await self._calls.run(reply.tool_uses)))
            if limits.output_tokens is not None and self._output_tokens >= limits.output_tokens:
                return "max_tokens"
        return "max_turn_requests"

    async def _instructions(self) -> str:
        own = self._own
        parts = [own.profile.instructions, own.context.instructions()]
        words = "\n\n".join(part for part in parts if part.strip())
        return await instructions_for(own.session.workspace, words, own.session.instructions)

    async def _request(self, instructions: str) -> ModelReply:
        """Ask the model once, and once more with less to read when it was too much."""
        try:
            return await self._stream(instructions)
        except ContextOverflow:
            self._turn.calls.end("the conversation was too long")
            await compact(self._turn, self._prompt)
            return await self._stream(instructions)

    async def _stream(self, instructions: str) -> ModelReply:
        own, turn = self._own, self._turn
        options = own.session.settings.values
        await own.session.mcp.catch_up(own.session.notice)
        self._calls.tools = await own.context.tools()
        said = own.server_words(self._calls.tools.values())
        request = ModelRequest(
            messages=own.memory.messages,
            tools=[tool.definition for tool in self._calls.tools.values()],
            instructions=f"{instructions}\n\n{said}" if said else instructions,
            max_output_tokens=own.profile.limits.output_tokens,
            thought_level=options.get(THOUGHT_LEVEL),
        )
        put = own.session.updates.put  # a cancelled turn does not come here: nothing is left to check
        with own.trace_request(turn) as traced:
            reply = ModelReply(turn, self._calls, traced, thoughts=own.session.settings.option(THOUGHTS))
            try:
                async with aclosing(own.conversation.reply(request)) as parts:
                    async for part in parts:
                        # Nearly all parts are text: a match and two coroutines would take half of the time of each.
                        if not isinstance(part, ReplyText):
                            await reply.take(part)
                        elif put(reply.say(part.text)):
                            await turn.flow()
            finally:
                if reply.has_begun:
                    own.memory.remember(reply.message())
            reply.note_end()
            await self._count(reply.usage)
        return reply

    async def _count(self, usage: TokenUsage | None) -> None:
        if usage is None:
            return
        own, turn = self._own, self._turn
        self._output_tokens += usage.output
        turn.count(usage)
        used = own.memory.context_used = usage.input + usage.output
        spent = own.session.usage.cost_usd
        cost = None if spent is None else v1.Cost(amount=spent, currency="USD")
        await turn.send(v1.UsageUpdate(used=used, size=own.model.context_size, cost=cost))
