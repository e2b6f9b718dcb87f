"""The turn loop of our agent. It asks the model and runs its tool calls until the model is done."""

from collections.abc import Sequence
from contextlib import aclosing

from dragoman.agent.turns.turn import Turn
from dragoman.agent.turns.usage import TokenUsage
from dragoman.assistant.attachments import resolve
from dragoman.assistant.compaction import FULL, compact
from dragoman.assistant.instructions import instructions_for
from dragoman.assistant.model_reply import ModelReply
from dragoman.assistant.models.message import AssistantMessage, ToolMessage, UserMessage
from dragoman.assistant.models.model import ReplyRequest, ReplyText
from dragoman.assistant.options import THOUGHT_LEVEL, THOUGHTS
from dragoman.assistant.resource_mentions import find_resource_mentions, read_mentions
from dragoman.assistant.session import AssistantSession
from dragoman.assistant.tool_calls import ToolCallRunner
from dragoman.errors import ContextOverflowError
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
        """Run the turn. Raises ModelError or LogError."""
        await self._remember_prompt()
        await self._prepare_context()
        return await self._converse()

    async def _remember_prompt(self) -> None:
        """Add the prompt with its attached files to the memory. An MCP server's prompt may have several messages."""
        turn, memory = self._turn, self._own.memory
        if turn.mcp_prompt is None:
            blocks = [*turn.prompt, *await self._mentioned_resources(), *self._changed_resources()]
            self._prompt = await resolve(blocks, turn.session.workspace, self._own.model.content_types)
            memory.remember(UserMessage(self._prompt))
            return
        for message in turn.mcp_prompt:
            if message.role == "user":
                self._prompt = [message.content]
                memory.remember(UserMessage(self._prompt))
            elif isinstance(message.content, v1.TextContent):
                memory.remember(AssistantMessage(message.content.text))

    async def _mentioned_resources(self) -> Sequence[v1.ContentBlock]:
        """Return the MCP resources that the prompt mentions. Show a notice for each that could not be read."""
        session = self._turn.session
        mentions = find_resource_mentions(self._turn.prompt)
        if not mentions:
            return ()
        await session.mcp.wait(session.notice)
        found = await read_mentions(mentions, session.mcp)
        for problem in found.problems:
            session.notice(problem, "warning")
        return found.blocks

    def _changed_resources(self) -> list[v1.ContentBlock]:
        """Return a note for the model about resources that may have changed."""
        changed = self._turn.session.mcp.resources.pop_changed()
        lines = [f"[The resource {uri} of {server} may have changed since it was read.]" for server, uri in changed]
        return [v1.TextContent(text="\n".join(lines))] if lines else []

    async def _prepare_context(self) -> None:
        """Prepare the tools, rules and references for the model."""
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
        text = "\n\n".join(part for part in parts if part.strip())
        return await instructions_for(own.session.workspace, text, own.session.instructions)

    async def _request(self, instructions: str) -> ModelReply:
        """Send one request to the model. If the context overflows, compact it and try once more."""
        try:
            return await self._stream(instructions)
        except ContextOverflowError:
            self._turn.calls.end("the conversation was too long")
            await compact(self._turn, self._prompt)
            return await self._stream(instructions)

    async def _stream(self, instructions: str) -> ModelReply:
        own, turn = self._own, self._turn
        options = own.session.settings.values
        await own.session.mcp.catch_up(own.session.notice)
        self._calls.tools = await own.context.tools()
        server_instructions = own.server_instructions(self._calls.tools.values())
        request = ReplyRequest(
            messages=own.memory.messages,
            tools=[tool.definition for tool in self._calls.tools.values()],
            instructions=f"{instructions}\n\n{server_instructions}" if server_instructions else instructions,
            max_output_tokens=own.profile.limits.output_tokens,
            thought_level=options.get(THOUGHT_LEVEL),
        )
        put = own.session.updates.put  # a cancelled turn does not get here, so nothing is left to check
        with own.trace_request(turn) as traced:
            reply = ModelReply(turn, self._calls, traced, thoughts=own.session.settings.option(THOUGHTS))
            try:
                async with aclosing(own.conversation.reply(request)) as parts:
                    async for part in parts:
                        # Nearly all parts are text. A match and two coroutines would double the time of each.
                        if not isinstance(part, ReplyText):
                            await reply.add(part)
                        elif put(reply.say(part.text)):
                            await turn.flow()
            finally:
                if reply.has_begun:
                    own.memory.remember(reply.message())
            reply.record_end()
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
