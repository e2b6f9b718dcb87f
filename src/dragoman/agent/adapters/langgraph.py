"""Runs a LangGraph graph or a LangChain agent as an ACP agent.

    from langchain.agents import create_agent
    from dragoman.agent.adapters import langgraph

    graph = create_agent("openai:gpt-5", tools=[search], middleware=[langgraph.AcpMiddleware()])
    langgraph.adapt(graph, "searcher").run()

The graph's state must have `messages`. Each tool of its tool nodes is shown and asks according to the author's rule. A
denial becomes the result of the call. A node that calls a tool directly shows the call with `current_turn`. The
middleware offers the model the tools of the client's MCP servers. A graph without `create_agent` uses `mcp_tools` and
`wrap_tool_call` instead.
"""

# LangGraph leaves the parameters of its generic types open.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any
from uuid import uuid4

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolCall,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.constants import START
from langgraph.errors import GraphRecursionError
from langgraph.prebuilt.tool_node import ToolCallRequest, ToolNode
from langgraph.pregel import Pregel  # pyright: ignore[reportMissingTypeStubs] -- it has types, and no py.typed
from langgraph.types import Command

from dragoman.agent import Agent, Turn
from dragoman.agent.adapters.framework import (
    AskRule,
    CallDeniedError,
    FrameworkMemory,
    ToolRule,
    current_turn,
    prompt_parts,
    prompt_text,
    running,
    show_call,
)
from dragoman.agent.servers.mcp_tool import McpTool
from dragoman.protocol import v1

__all__ = ["AcpMiddleware", "adapt", "current_turn", "mcp_tools", "wrap_tool_call"]

Graph = Pregel[Any, Any, Any, Any]
ToolInput = str | dict[str, Any] | ToolCall
ToolResult = ToolMessage | Command[Any]

_FINISH: dict[str, v1.StopReason] = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
    "safety": "refusal",
}


def adapt(
    graph: Graph,
    name: str,
    *,
    asks: AskRule = True,
    kinds: Mapping[str, v1.ToolKind] | None = None,
    config: RunnableConfig | None = None,
    **options: Any,
) -> Agent:
    """Create an ACP agent from a compiled graph whose state has `messages`.

    `asks` says which tools ask before they run: all by default, named tools, or a function of name and arguments.
    `kinds` maps tool names to ACP kinds. `config` applies to each run, and its `thread_id` is the session ID. A graph
    with a checkpointer keeps its state there. Any other graph receives the messages from the session log. `options`
    are passed to `dragoman.agent.Agent`.
    """
    agent = Agent(name, **options)
    memory = FrameworkMemory(agent, "langgraph")
    _show_tools(graph, ToolRule(asks, kinds or {}))

    @agent.on_prompt
    async def answer(turn: Turn) -> v1.StopReason | None:
        settings: RunnableConfig = {**(config or {})}
        settings["configurable"] = {**settings.get("configurable", {}), "thread_id": turn.session.id}
        known = await _known(graph, settings)
        before = [] if known else messages_from_dict(memory.messages(turn.session))
        prompt = HumanMessage(_prompt(turn), id=str(uuid4()))
        run = _Run(turn, {message.id for message in (*known, *before)})
        kept: list[BaseMessage] | None = None
        try:
            with running(turn):
                await run.stream(graph, [*before, prompt], settings)
            kept = run.new_messages()
            return await run.finish()
        except GraphRecursionError as limit:
            await turn.notice(str(limit).partition("\n")[0], "warning")
            return "max_turn_requests"
        finally:
            if kept is None:
                kept = _stopped(turn, run.sent)
                await _end_checkpoint(graph, settings, kept[-1])
            memory.extend(turn.session, messages_to_dict(kept))

    return agent


async def _known(graph: Graph, config: RunnableConfig) -> list[BaseMessage]:
    """Return the messages that the graph's checkpointer has for the session."""
    if not graph.checkpointer:
        return []
    return (await graph.aget_state(config)).values.get("messages", [])


async def _end_checkpoint(graph: Graph, config: RunnableConfig, answer: BaseMessage) -> None:
    """Answer the calls that a stopped run left open in the graph's state, and add the text that was sent."""
    known = await _known(graph, config)
    if not known:
        return
    answered = {message.tool_call_id for message in known if isinstance(message, ToolMessage)}
    calls = [call for message in known if isinstance(message, AIMessage) for call in message.tool_calls]
    ends = [ToolMessage("stopped", tool_call_id=call["id"]) for call in calls if call["id"] not in answered]
    await graph.aupdate_state(config, {"messages": [*ends, answer]}, as_node=START)


class _Run:
    """One run of the graph. Its stream becomes the text and the thoughts of the turn."""

    def __init__(self, turn: Turn, earlier: AbstractSet[str | None]) -> None:
        self._turn = turn
        self._earlier = earlier
        self._message: str | None = None
        self._state: list[BaseMessage] = []
        self.sent: list[str] = []

    async def stream(self, graph: Graph, messages: list[BaseMessage], config: RunnableConfig) -> None:
        """Run the graph to its end."""
        stream: Any = graph.astream({"messages": messages}, config, stream_mode=["messages", "values"])
        async for mode, value in stream:
            if mode == "messages":
                await self._stream_message(value[0])
            else:
                self._state = value.get("messages") or self._state

    def new_messages(self) -> list[BaseMessage]:
        """Return the messages that this run has added to the state, including the prompt."""
        return [message for message in self._state if message.id not in self._earlier]

    async def finish(self) -> v1.StopReason | None:
        """Send an answer that was not streamed, count the tokens and return the stop reason."""
        replies = [message for message in self.new_messages() if isinstance(message, AIMessage)]
        if replies and not self.sent:
            await self._send(str(replies[-1].text))
        for reply in replies:
            if (usage := reply.usage_metadata) is not None:
                await self._turn.usage(
                    input_tokens=usage["input_tokens"],
                    output_tokens=usage["output_tokens"],
                    thought_tokens=usage.get("output_token_details", {}).get("reasoning", 0),
                    cached_read_tokens=usage.get("input_token_details", {}).get("cache_read", 0),
                    cached_write_tokens=usage.get("input_token_details", {}).get("cache_creation", 0),
                )
        return _stop_reason(replies[-1]) if replies else None

    async def _stream_message(self, message: BaseMessage) -> None:
        # A reply that was streamed in chunks does not arrive again as a whole. A reply without streaming arrives once.
        if not isinstance(message, AIMessage) or message.id in self._earlier:
            return
        if message.id != self._message:
            self._message = message.id
            self._turn.new_message()
        for block in message.content_blocks:
            match block:
                case {"type": "text", "text": text}:
                    await self._send(text)
                case {"type": "reasoning", "reasoning": text}:
                    await self._turn.think(text)
                case _:
                    pass

    async def _send(self, text: str) -> None:
        if text:
            self.sent.append(text)
            await self._turn.say(text)


def _stop_reason(reply: AIMessage) -> v1.StopReason | None:
    """Return the stop reason of a reply, from the provider's reason that LangChain passes on."""
    metadata = reply.response_metadata
    reason = str(metadata.get("finish_reason") or metadata.get("stop_reason") or "").lower()
    return _FINISH.get(reason)


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────


class _ShownTool(BaseTool):
    """A tool of the graph whose calls are announced, ask for permission and end. A denial is the result of the call.

    LangChain's callbacks cannot do this. For a synchronous tool they run in a thread, and their exceptions are lost
    there, so a denied call would run.
    """

    inner: BaseTool
    rule: Any

    async def ainvoke(self, input: ToolInput, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 -- the name in LangChain
        """Show the call and run it. Outside a turn, only run it."""
        turn = current_turn()
        if turn is None:
            return await self.inner.ainvoke(input, config, **kwargs)
        call = input if isinstance(input, dict) else {"args": {"input": input}}
        passed = call.get("args", call)
        # Arguments that LangGraph injects are not shown to the user.
        arguments = {key: value for key, value in passed.items() if key in self.inner.args}
        try:
            return await show_call(
                turn, self.rule, self.name, arguments, lambda: self.inner.ainvoke(input, config, **kwargs)
            )
        except CallDeniedError as denial:
            return ToolMessage(str(denial), tool_call_id=call.get("id") or "", name=self.name, status="error")

    def invoke(self, input: ToolInput, config: Any = None, **kwargs: Any) -> Any:  # noqa: A002 -- the name in LangChain
        """Run the tool outside a turn. In a turn, raise ToolException, because a thread cannot ask the user."""
        if current_turn() is not None:
            raise ToolException(
                f"{self.name} is called from a node that is not async. Make the node async, so that it can ask"
            )
        return self.inner.invoke(input, config, **kwargs)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        del args, kwargs
        raise ToolException(f"{self.name} was called as _run; call ainvoke")


def _show_tools(graph: Graph, rule: ToolRule) -> None:
    """Wrap each tool of the graph's tool nodes and of its subgraphs in a `_ShownTool`."""
    for node in graph.nodes.values():
        if isinstance(node.bound, ToolNode):
            tools = node.bound.tools_by_name
            tools.update({name: _shown(tool, rule) for name, tool in tools.items()})
    subgraphs: list[Any] = [subgraph for _, subgraph in graph.get_subgraphs()]
    for subgraph in subgraphs:
        if isinstance(subgraph, Pregel):  # a remote graph has its own tools
            _show_tools(subgraph, rule)


def _shown(tool: BaseTool, rule: ToolRule) -> BaseTool:
    if isinstance(tool, _ShownTool):
        tool = tool.inner
    return _ShownTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.args_schema,
        return_direct=tool.return_direct,
        inner=tool,
        rule=rule,
    )


class AcpMiddleware(AgentMiddleware[Any, Any]):
    """Middleware for `create_agent` that offers the model the tools of the client's MCP servers."""

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Add the session's MCP tools to the tools of the request."""
        tools = await mcp_tools()
        return await handler(request.override(tools=[*request.tools, *tools]) if tools else request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
    ) -> ToolResult:
        """Run a call of any tool, including MCP tools."""
        return await wrap_tool_call(request, handler)


async def wrap_tool_call(
    request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolResult]]
) -> ToolResult:
    """Run a call of a `ToolNode`, which may be a call of one of the client's MCP tools.

    Use it in your own graph: `ToolNode(tools, awrap_tool_call=wrap_tool_call)`.
    """
    call = request.tool_call
    if request.tool is None:
        found = next((tool for tool in await mcp_tools() if tool.name == call["name"]), None)
        request = request.override(tool=found) if found is not None else request
    return await handler(request)


async def mcp_tools() -> list[BaseTool]:
    """Return the tools of the session's MCP servers as LangChain tools. Outside a turn, return none."""
    turn = current_turn()
    return [] if turn is None else [_as_tool(turn, tool) for tool in await turn.mcp_tools()]


def _as_tool(turn: Turn, tool: McpTool) -> BaseTool:
    async def call(**arguments: Any) -> str:
        outcome = await turn.call_tool(tool, arguments)
        if outcome.failed:
            raise ToolException(outcome.text)
        return outcome.text

    return StructuredTool(
        name=tool.name,
        description=tool.description,
        args_schema=tool.input_schema,
        coroutine=call,
        handle_tool_error=True,
    )


# ── messages ──────────────────────────────────────────────────────────────────────────────────────


def _prompt(turn: Turn) -> str | list[str | dict[str, Any]]:
    """Return the prompt. A single text becomes a str, because hand-written graphs expect one."""
    match prompt_parts(turn):
        case [str(text)]:
            return text
        case parts:
            return [part if isinstance(part, str) else _media(part) for part in parts]


def _media(part: v1.ImageContent | v1.AudioContent) -> dict[str, Any]:
    kind = "image" if isinstance(part, v1.ImageContent) else "audio"
    return {"type": kind, "base64": part.data, "mime_type": part.mime_type}


def _stopped(turn: Turn, sent: list[str]) -> list[BaseMessage]:
    """Return the memory of a stopped turn: the prompt and the text that was sent, without unfinished calls."""
    answer = "".join(sent) or "[stopped before answering]"
    return [HumanMessage(prompt_text(turn), id=str(uuid4())), AIMessage(answer, id=str(uuid4()))]
