"""Runs a pydantic-ai agent as an ACP agent.

from pydantic_ai import Agent
from dragoman.agent.adapters import pydantic_ai

assistant = Agent("openai:gpt-5", instructions="Be brief.")
pydantic_ai.adapt(assistant, "brief").run()
"""

import base64
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

import pydantic_ai
from pydantic_ai import messages as parts
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ContentFilterError, ToolFailed, UsageLimitExceeded
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext, Tool, ToolDefinition
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai.usage import UsageLimits

from dragoman.agent import Agent, Turn
from dragoman.agent.adapters.framework import (
    AskRule,
    CallDeniedError,
    FrameworkMemory,
    ToolRule,
    prompt_parts,
    prompt_text,
    result_text,
    running,
    show_call,
)
from dragoman.agent.servers.mcp_tool import McpTool
from dragoman.protocol import v1

__all__ = ["adapt"]

D = TypeVar("D")

_FINISH: dict[str, v1.StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


def adapt(
    framework: pydantic_ai.Agent[D, Any],
    name: str,
    *,
    deps: Callable[[Turn], D] | None = None,
    asks: AskRule = True,
    kinds: dict[str, v1.ToolKind] | None = None,
    usage_limits: UsageLimits | None = None,
    **options: Any,
) -> Agent:
    """Create an ACP agent from a pydantic-ai agent.

    `deps` creates the dependencies of a run. `asks` says which of the agent's tools ask before they run: all by
    default, named tools, or a function of name and arguments. `kinds` maps tool names to ACP kinds. The tools of the
    client's MCP servers are a toolset of each run. `options` are passed to `dragoman.agent.Agent`.
    """
    agent = Agent(name, **options)
    memory = FrameworkMemory(agent, "pydantic-ai")
    rule = ToolRule(asks, kinds or {})

    @agent.on_prompt
    async def answer(turn: Turn) -> v1.StopReason | None:
        run = _Run(turn)
        history = parts.ModelMessagesTypeAdapter.validate_python(memory.messages(turn.session))
        tools = [_as_tool(turn, tool) for tool in await turn.mcp_tools()]
        kept: Sequence[Any] | None = None
        try:
            with running(turn):
                async with framework.run_stream_events(
                    _prompt(turn),
                    message_history=history,
                    deps=deps(turn) if deps is not None else None,  # pyright: ignore[reportArgumentType] -- as the framework's own default
                    toolsets=[FunctionToolset(tools, id="mcp")] if tools else None,
                    capabilities=[_ShownCalls(turn, rule, frozenset(tool.name for tool in tools))],
                    usage_limits=usage_limits,
                ) as events:
                    async for event in events:
                        await run.stream(event)
            if run.result is not None:
                kept = parts.ModelMessagesTypeAdapter.dump_python(run.result.new_messages(), mode="json")
            return await run.finish()
        except UsageLimitExceeded as limit:
            await turn.notice(str(limit), "warning")
            return "max_turn_requests"
        except ContentFilterError:
            return "refusal"
        finally:
            memory.extend(turn.session, _stopped(turn, run.sent) if kept is None else kept)

    return agent


class _Run:
    """One run of the framework. Its events become the text and the thoughts of the turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.sent: list[str] = []
        self.result: AgentRunResult[Any] | None = None

    async def stream(self, event: object) -> None:
        match event:
            case parts.PartStartEvent(part=parts.TextPart(content=text)):
                self._turn.new_message()
                await self._send(text)
            case parts.PartDeltaEvent(delta=parts.TextPartDelta(content_delta=text)):
                await self._send(text)
            case parts.PartStartEvent(part=parts.ThinkingPart(content=text)):
                await self._turn.think(text)
            case parts.PartDeltaEvent(delta=parts.ThinkingPartDelta(content_delta=text)):
                await self._turn.think(text or "")
            case pydantic_ai.AgentRunResultEvent():
                self.result = cast("AgentRunResult[Any]", event.result)
            case _:
                pass

    async def finish(self) -> v1.StopReason | None:
        """Send an output that is not text, count the tokens and return the stop reason."""
        result = self.result
        if result is None:
            return None
        if not self.sent:
            await self._send(result_text(result.output))
        usage = result.usage
        await self._turn.usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            cached_read_tokens=usage.cache_read_tokens,
            cached_write_tokens=usage.cache_write_tokens,
        )
        return _FINISH.get(result.response.finish_reason or "")

    async def _send(self, text: str) -> None:
        if text:
            self.sent.append(text)
            await self._turn.say(text)


class _ShownCalls(AbstractCapability[Any]):
    """Wraps each call of the framework's own tools. The turn shows the calls of MCP tools."""

    def __init__(self, turn: Turn, rule: ToolRule, others: frozenset[str]) -> None:
        self._turn = turn
        self._rule = rule
        self._others = others

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: parts.ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Announce the call, ask, run it and show its result. A denial becomes the tool's result."""
        del ctx
        if tool_def.name in self._others or tool_def.kind != "function":
            return await handler(args)
        arguments = call.args_as_dict()
        try:
            return await show_call(self._turn, self._rule, tool_def.name, arguments, lambda: handler(args))
        except CallDeniedError as denial:
            raise ToolFailed(str(denial)) from None


def _as_tool(turn: Turn, tool: McpTool) -> Tool[Any]:
    async def call(**arguments: Any) -> str:
        outcome = await turn.call_tool(tool, arguments)
        if outcome.failed:
            raise ToolFailed(outcome.text)
        return outcome.text

    return Tool[Any].from_schema(call, tool.name, tool.description, tool.input_schema)


def _prompt(turn: Turn) -> list[parts.UserContent]:
    return [
        part if isinstance(part, str) else parts.BinaryContent(base64.b64decode(part.data), media_type=part.mime_type)
        for part in prompt_parts(turn)
    ]


def _stopped(turn: Turn, sent: list[str]) -> list[Any]:
    """Return the memory of a stopped turn: the prompt and the text that was sent, without unfinished calls."""
    request = parts.ModelRequest(parts=[parts.UserPromptPart(prompt_text(turn))])
    reply = parts.ModelResponse(parts=[parts.TextPart("".join(sent) or "[stopped before answering]")])
    return parts.ModelMessagesTypeAdapter.dump_python([request, reply], mode="json")
