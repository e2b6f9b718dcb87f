"""Runs an agent of the OpenAI Agents SDK as an ACP agent.

    from agents import Agent
    from dragoman.agent.adapters import openai_agents

    assistant = Agent(name="Brief", instructions="Be brief.", model="gpt-5")
    openai_agents.adapt(assistant, "brief").run()

Function tools of the agent and of its handoff agents are shown and ask for permission. A denial becomes the result of
the call. Tools that run at OpenAI (web search, code interpreter) cannot ask.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import agents
import msgspec
from agents.exceptions import MaxTurnsExceeded, ModelRefusalError
from agents.items import TResponseInputItem
from agents.tool_context import ToolContext

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

_TEXT = "response.output_text.delta"
_REFUSAL = "response.refusal.delta"
_THOUGHTS = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})


def adapt(
    framework: agents.Agent[Any],
    name: str,
    *,
    context: Callable[[Turn], Any] | None = None,
    asks: AskRule = True,
    kinds: Mapping[str, v1.ToolKind] | None = None,
    max_turns: int = 50,
    run_config: agents.RunConfig | None = None,
    **options: Any,
) -> Agent:
    """Create an ACP agent from an agent of the OpenAI Agents SDK.

    `context` creates the context of a run. `asks` says which function tools ask before they run: all by default, named
    tools, or a function of name and arguments. `kinds` maps tool names to ACP kinds. The tools of the client's MCP
    servers are function tools of each run. `options` are passed to `dragoman.agent.Agent`.
    """
    agent = Agent(name, **options)
    memory = FrameworkMemory(agent, "openai-agents")
    rule = ToolRule(asks, kinds or {})

    @agent.on_prompt
    async def answer(turn: Turn) -> v1.StopReason | None:
        before = memory.messages(turn.session)
        prompt = _prompt(turn)
        extra = [_as_tool(turn, tool) for tool in await turn.mcp_tools()]
        run = _Run(turn)
        kept: list[Any] | None = None
        try:
            with running(turn):
                result = agents.Runner.run_streamed(
                    _with_shown_tools(framework, turn, rule, extra),
                    [*before, prompt],
                    context=context(turn) if context is not None else None,
                    max_turns=max_turns,
                    run_config=run_config,
                )
                try:
                    async for event in result.stream_events():
                        await run.stream(event)
                finally:
                    result.cancel()
            kept = result.to_input_list()[len(before) :]
            await run.finish(result)
        except MaxTurnsExceeded as limit:
            await turn.notice(str(limit), "warning")
            return "max_turn_requests"
        except ModelRefusalError:
            return "refusal"
        finally:
            memory.extend(turn.session, _stopped(turn, run.sent) if kept is None else kept)
        return "refusal" if run.refused else None

    return agent


class _Run:
    """One run of the framework. Its events become the text and the thoughts of the turn."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.sent: list[str] = []
        self.refused = False

    async def stream(self, event: agents.StreamEvent) -> None:
        """Send a piece of text or of a thought. Calls are shown by their wrapped tools."""
        if event.type != "raw_response_event":
            return
        kind = event.data.type
        delta = getattr(event.data, "delta", None)
        if not isinstance(delta, str):
            return
        if kind in (_TEXT, _REFUSAL):
            self.refused = self.refused or kind == _REFUSAL
            await self._send(delta)
        elif kind in _THOUGHTS:
            await self._turn.think(delta)

    async def finish(self, result: agents.RunResultStreaming) -> None:
        """Send an output that was not streamed as text, and count the tokens."""
        if not self.sent:
            await self._send(result_text(result.final_output))
        usage = result.context_wrapper.usage
        await self._turn.usage(
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            thought_tokens=usage.output_tokens_details.reasoning_tokens,
            cached_read_tokens=usage.input_tokens_details.cached_tokens,
        )

    async def _send(self, text: str) -> None:
        if text:
            self.sent.append(text)
            await self._turn.say(text)


def _with_shown_tools(
    agent: agents.Agent[Any], turn: Turn, rule: ToolRule, extra: list[agents.Tool]
) -> agents.Agent[Any]:
    """Return copies of an agent and its handoff agents whose tools are shown and ask for permission."""
    copies: dict[int, agents.Agent[Any]] = {}

    def copy(original: agents.Agent[Any]) -> agents.Agent[Any]:
        if id(original) not in copies:
            copies[id(original)] = clone = original.clone()  # stored first, because handoffs may be cyclic
            clone.tools = [*(_shown(tool, turn, rule) for tool in original.tools), *extra]
            clone.handoffs = [copy(each) if isinstance(each, agents.Agent) else each for each in original.handoffs]
        return copies[id(original)]

    return copy(agent)


def _shown(tool: agents.Tool, turn: Turn, rule: ToolRule) -> agents.Tool:
    if not isinstance(tool, agents.FunctionTool):
        return tool

    async def invoke(context: ToolContext[Any], text: str) -> Any:
        try:
            return await show_call(turn, rule, tool.name, _arguments(text), lambda: tool.on_invoke_tool(context, text))
        except CallDeniedError as denial:
            return str(denial)

    return replace(tool, on_invoke_tool=invoke)


def _as_tool(turn: Turn, tool: McpTool) -> agents.Tool:
    async def invoke(_context: ToolContext[Any], text: str) -> str:
        return (await turn.call_tool(tool, _arguments(text))).text

    return agents.FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.input_schema,
        on_invoke_tool=invoke,
        strict_json_schema=False,
    )


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments of a call. If the model wrote something other than an object, return it as `input`."""
    try:
        return msgspec.json.decode(text or "{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {"input": text}


def _prompt(turn: Turn) -> TResponseInputItem:
    content: list[Any] = []
    for part in prompt_parts(turn):
        match part:
            case str():
                content.append({"type": "input_text", "text": part})
            case v1.ImageContent():
                url = f"data:{part.mime_type};base64,{part.data}"
                content.append({"type": "input_image", "image_url": url, "detail": "auto"})
            case _:
                form = part.mime_type.rpartition("/")[2]
                content.append({"type": "input_audio", "input_audio": {"data": part.data, "format": form}})
    return {"role": "user", "content": content}


def _stopped(turn: Turn, sent: list[str]) -> list[Any]:
    """Return the memory of a stopped turn: the prompt and the text that was sent, without unfinished calls."""
    answer = "".join(sent) or "[stopped before answering]"
    return [{"role": "user", "content": prompt_text(turn)}, {"role": "assistant", "content": answer}]
