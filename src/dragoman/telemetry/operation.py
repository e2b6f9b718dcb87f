"""The operations that are traced: turns, model requests, tool calls and requests to MCP servers.

    invoke_agent NAME        a prompt, in the client
      invoke_agent NAME      its turn, in the agent
        chat MODEL           a model request
        execute_tool NAME    a tool call, including the wait for its permission
          tools/call NAME    the request to its MCP server
            tools/call NAME  the function that answers it, if we serve it

Each operation is a context manager. All operations traced inside it become its children, including those of other
libraries. The trace crosses processes in `_meta`, with the keys that ACP and MCP reserve for it.

Names and attributes follow the semantic conventions 1.41.0, the last release that covers generative AI. An operation
contains no text of a prompt, an answer, a title, an argument or an error, unless content capture is on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import msgspec

Attributes = Mapping[str, "str | int | float | bool | Sequence[str]"]

OperationKind = Literal["internal", "client", "server"]
DurationMetric = Literal["gen_ai.client.operation.duration", "mcp.client.operation.duration"]

META_KEYS = ("traceparent", "tracestate", "baggage")
"""The keys at the root of `_meta` that both protocols reserve for the trace context."""

OWN_PROVIDER = "dragoman"
"""The provider of an operation without a model provider, because the convention requires one for each."""

PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "google-gla": "gcp.gemini",
    "google-vertex": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""The convention's names of providers that we call differently."""


class Operation:
    """One operation. This base class does nothing and is used while telemetry is off."""

    captures_content = False
    """Whether text of users, models and tools may be recorded."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes to the operation."""

    def fail(self, kind: str, reason: str = "") -> None:
        """Mark the operation as failed. `kind` is one of a few words, and `reason` is foreign text."""

    def record_first_chunk(self) -> None:
        """Record the time of the first piece of an answer."""

    def inject(self, meta: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return `_meta` with the trace context added, for a message to another process."""
        return meta

    def begin(self) -> None:
        """Start the operation as the parent of later operations in this task."""

    def end(self, error: BaseException | None = None) -> None:
        """End the operation in the task that began it. An error, except a cancellation, marks it as failed."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.end(error)


UNTRACED = Operation()


class OperationSpec(msgspec.Struct, frozen=True):
    """The name and the attributes of an operation that has not begun."""

    name: str
    kind: OperationKind
    attributes: Attributes
    duration: DurationMetric | None
    """The metric that counts the operation and records its duration."""
    measured: Sequence[str] = ()
    """The attributes that the metric has as well."""


ReadFigures = Callable[[], Sequence[tuple[str, float, Attributes]]]
"""Returns the name, the value and the attributes of each figure."""


class Tracer(Protocol):
    """The implementation of operations while telemetry is on."""

    def open(self, spec: OperationSpec, meta: Mapping[str, Any] | None = None) -> Operation:
        """Return an operation. Its parent is the context in `meta`, or else the current one."""
        ...

    def count_tokens(self, attributes: Attributes, *, input_tokens: int, output_tokens: int) -> None:
        """Add to the token metric."""
        ...

    def observe(self, names: Mapping[str, str], read: ReadFigures) -> None:
        """Measure figures at each export. `names` has the description of each. `read` is called in a thread."""
        ...


_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Trace operations with `tracer` from now on. None turns tracing off."""
    global _tracer  # noqa: PLW0603 -- one process has one telemetry, as in OpenTelemetry itself
    _tracer = tracer


def is_on() -> bool:
    """Return whether operations are traced."""
    return _tracer is not None


_GEN_AI = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.agent.name")


def _gen_ai(name: str, target: str, kind: OperationKind, attributes: dict[str, Any]) -> OperationSpec:
    named = {"gen_ai.operation.name": name, "gen_ai.provider.name": OWN_PROVIDER, **attributes}
    measured = (*_GEN_AI, "gen_ai.tool.name")
    return OperationSpec(f"{name} {target}", kind, named, "gen_ai.client.operation.duration", measured)


def trace_prompt(agent: str, session_id: str) -> Operation:
    """Trace a prompt that a client sends to an agent."""
    if _tracer is None:
        return UNTRACED
    attributes = {"gen_ai.agent.name": agent, "gen_ai.conversation.id": session_id}
    return _tracer.open(_gen_ai("invoke_agent", agent, "client", attributes))


def trace_turn(agent: str, version: str, session_id: str, meta: Mapping[str, Any] | None) -> Operation:
    """Trace a turn of an agent, as part of the trace in the prompt's `_meta`."""
    if _tracer is None:
        return UNTRACED
    attributes = {"gen_ai.agent.name": agent, "gen_ai.agent.version": version, "gen_ai.conversation.id": session_id}
    return _tracer.open(_gen_ai("invoke_agent", agent, "internal", attributes), meta)


def trace_model_request(provider: str, model: str, session_id: str) -> Operation:
    """Trace a request to a model."""
    if _tracer is None:
        return UNTRACED
    attributes = {**name_model(provider, model), "gen_ai.conversation.id": session_id, "gen_ai.request.stream": True}
    return _tracer.open(_gen_ai("chat", model, "client", attributes))


def name_model(provider: str, model: str) -> dict[str, str]:
    """Return the attributes that name a model."""
    return {"gen_ai.provider.name": PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def trace_tool_call(name: str, call_id: str) -> Operation:
    """Trace a tool call of an agent, including the wait for its permission."""
    if _tracer is None:
        return UNTRACED
    attributes = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.type": "function"}
    return _tracer.open(_gen_ai("execute_tool", name, "internal", attributes))


_OPEN_ENDED = frozenset(("subscriptions/listen",))
"""Requests that stay open as long as the server. Their spans would show nothing."""


def trace_mcp_request(method: str, params: Mapping[str, Any], server: str, version: str | None) -> Operation:
    """Trace a request to an MCP server."""
    if _tracer is None or method in _OPEN_ENDED:
        return UNTRACED
    attributes = {"mcp.method.name": method, "dragoman.mcp.server": server, **_target(method, params)}
    if version is not None:
        attributes["mcp.protocol.version"] = version
    return _tracer.open(_mcp_operation(method, "client", attributes))


def trace_served_tool(name: str, meta: Mapping[str, Any] | None) -> Operation:
    """Trace a function that answers a tool call as an MCP server, as part of the trace in `_meta`."""
    if _tracer is None:
        return UNTRACED
    method = "tools/call"
    attributes = {"mcp.method.name": method, **_target(method, {"name": name})}
    return _tracer.open(_mcp_operation(method, "server", attributes), meta)


def _target(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the tool or the prompt of a request. Omit the address of a resource, which may contain secrets."""
    match method:
        case "tools/call":
            return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": str(params.get("name"))}
        case "prompts/get":
            return {"gen_ai.prompt.name": str(params.get("name"))}
        case _:
            return {}


def _mcp_operation(method: str, kind: OperationKind, attributes: dict[str, str]) -> OperationSpec:
    target = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.prompt.name")
    name = f"{method} {target}" if target else method
    duration: DurationMetric | None = "mcp.client.operation.duration" if kind == "client" else None
    measured = ("mcp.method.name", "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name")
    return OperationSpec(name, kind, attributes, duration, measured)


def count_tokens(model: tuple[str, str] | None, *, input_tokens: int, output_tokens: int) -> None:
    """Count the tokens of a model request, given its provider and model, or of a whole turn."""
    if _tracer is None:
        return
    name = "invoke_agent" if model is None else "chat"
    named = {"gen_ai.provider.name": OWN_PROVIDER} if model is None else name_model(*model)
    _tracer.count_tokens(
        {"gen_ai.operation.name": name, **named}, input_tokens=input_tokens, output_tokens=output_tokens
    )


def observe(names: Mapping[str, str], read: ReadFigures) -> None:
    """Measure figures at each export. `read` is called in a thread of the exporter."""
    if _tracer is not None:
        _tracer.observe(names, read)


def usage_attributes(
    *, input_tokens: int, output_tokens: int, cached_read: int, cached_write: int, thought: int
) -> dict[str, int]:
    """Return the attributes for the tokens of an operation. Omit parts that are zero."""
    parts = {
        "gen_ai.usage.cache_read.input_tokens": cached_read,
        "gen_ai.usage.cache_creation.input_tokens": cached_write,
        "gen_ai.usage.reasoning.output_tokens": thought,
    }
    return {
        "gen_ai.usage.input_tokens": input_tokens,
        "gen_ai.usage.output_tokens": output_tokens,
        **{name: count for name, count in parts.items() if count},
    }


def prompt_attribute(text: str) -> dict[str, str]:
    """Return the attribute for the user's text."""
    return {"gen_ai.input.messages": _encode([{"role": "user", "parts": [{"type": "text", "content": text}]}])}


def answer_attribute(text: str, finish_reason: str) -> dict[str, str]:
    """Return the attribute for the model's text."""
    message = {"role": "assistant", "parts": [{"type": "text", "content": text}], "finish_reason": finish_reason}
    return {"gen_ai.output.messages": _encode([message])}


def arguments_attribute(arguments: Any) -> dict[str, str]:
    """Return the attribute for the arguments of a tool call."""
    return {"gen_ai.tool.call.arguments": _encode(arguments)}


def result_attribute(result: Any) -> dict[str, str]:
    """Return the attribute for the result of a tool call."""
    return {"gen_ai.tool.call.result": _encode(result)}


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()
