"""The operations that are traced: turns, requests to models, tool calls and requests to MCP servers.

    invoke_agent NAME        a prompt, in the client
      invoke_agent NAME      its turn, in the agent
        chat MODEL           a request to a model
        execute_tool NAME    a tool call, with the wait for its permission
          tools/call NAME    the request to its MCP server
            tools/call NAME  the function behind it, if it is served by us

Each is a context manager: inside it, whatever is traced becomes its child, by libraries of the program too. The trace
goes from process to process in `_meta`, with the keys that ACP and MCP reserve for it.

Names and attributes are those of the semantic conventions 1.41.0, the last release that has those of generative AI.
No text of a prompt, an answer, a title, an argument or an error is part of an operation, unless its capture is on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, Self

import msgspec

Attributes = Mapping[str, "str | int | float | bool | Sequence[str]"]

OperationKind = Literal["internal", "client", "server"]
DurationMetric = Literal["gen_ai.client.operation.duration", "mcp.client.operation.duration"]

META_KEYS = ("traceparent", "tracestate", "baggage")
"""The keys at the root of `_meta` that both protocols reserve for the context of a trace."""

OWN_PROVIDER = "dragoman"
"""The provider of an operation that no provider of models has a part in: the convention wants one for each."""

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
"""The names of the convention for providers that we know by others."""


class Operation:
    """One operation; this class stands for those that are not traced, because telemetry is off."""

    captures_content = False
    """Whether text of people, models and tools may be noted."""

    def note(self, attributes: Attributes) -> None:
        """Add attributes."""

    def fail(self, kind: str, reason: str = "") -> None:
        """Let it end as failed: by a word from a short list, and a reason that is text of others."""

    def note_first_chunk(self) -> None:
        """Note that the first piece of an answer has come."""

    def carry(self, meta: dict[str, Any] | None = None) -> dict[str, Any] | None:
        """Return `_meta` for a message to another process, with the context of the trace added."""
        return meta

    def begin(self) -> None:
        """Make it the parent of all that follows in this task."""

    def end(self, error: BaseException | None = None) -> None:
        """End it, in the task that began it; an error other than a cancellation is its failure."""

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.end(error)


UNTRACED = Operation()


class OperationSpec(msgspec.Struct, frozen=True):
    """The name and the attributes of an operation before it begins."""

    name: str
    kind: OperationKind
    attributes: Attributes
    duration: DurationMetric | None
    """The metric that counts it and has its duration."""
    measured: Sequence[str] = ()
    """The attributes that the metric has as well."""


ReadFigures = Callable[[], Sequence[tuple[str, float, Attributes]]]
"""Returns the name, the value and the attributes of each figure."""


class Tracer(Protocol):
    """The implementation behind operations, while telemetry is on."""

    def open(self, spec: OperationSpec, meta: Mapping[str, Any] | None = None) -> Operation:
        """Return an operation, whose parent is the context of `meta` if that has one, else the current one."""
        ...

    def count_tokens(self, attributes: Attributes, *, input_tokens: int, output_tokens: int) -> None:
        """Add to the metric of tokens."""
        ...

    def observe(self, names: Mapping[str, str], read: ReadFigures) -> None:
        """Measure figures whenever metrics are sent; `names` has the meaning of each, `read` is called in a thread."""
        ...


_tracer: Tracer | None = None


def use_tracer(tracer: Tracer | None) -> None:
    """Trace operations from now on; None turns that off."""
    global _tracer  # noqa: PLW0603 -- one process has one telemetry, as in OpenTelemetry itself
    _tracer = tracer


def is_on() -> bool:
    """Tell whether operations are traced."""
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
    """Trace a turn of an agent, as a part of the trace that the prompt's `_meta` names."""
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
    """Return the attributes of a model."""
    return {"gen_ai.provider.name": PROVIDERS.get(provider, provider), "gen_ai.request.model": model}


def trace_tool_call(name: str, call_id: str) -> Operation:
    """Trace a tool call of an agent, from before its permission to its end."""
    if _tracer is None:
        return UNTRACED
    attributes = {"gen_ai.tool.name": name, "gen_ai.tool.call.id": call_id, "gen_ai.tool.type": "function"}
    return _tracer.open(_gen_ai("execute_tool", name, "internal", attributes))


_LASTING = frozenset(("subscriptions/listen",))
"""Requests that are open for as long as the server is: as spans they would tell nothing."""


def trace_mcp_request(method: str, params: Mapping[str, Any], server: str, version: str | None) -> Operation:
    """Trace a request to an MCP server."""
    if _tracer is None or method in _LASTING:
        return UNTRACED
    attributes = {"mcp.method.name": method, "dragoman.mcp.server": server, **_target(method, params)}
    if version is not None:
        attributes["mcp.protocol.version"] = version
    return _tracer.open(_mcp(method, "client", attributes))


def trace_served_tool(name: str, meta: Mapping[str, Any] | None) -> Operation:
    """Trace a function that answers a tool call as an MCP server does, as a part of the trace in `_meta`."""
    if _tracer is None:
        return UNTRACED
    method = "tools/call"
    return _tracer.open(_mcp(method, "server", {"mcp.method.name": method, **_target(method, {"name": name})}), meta)


def _target(method: str, params: Mapping[str, Any]) -> dict[str, str]:
    """Return the tool or the prompt of a request; the address of a resource may have secrets in it, and is left out."""
    match method:
        case "tools/call":
            return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": str(params.get("name"))}
        case "prompts/get":
            return {"gen_ai.prompt.name": str(params.get("name"))}
        case _:
            return {}


def _mcp(method: str, kind: OperationKind, attributes: dict[str, str]) -> OperationSpec:
    target = attributes.get("gen_ai.tool.name") or attributes.get("gen_ai.prompt.name")
    name = f"{method} {target}" if target else method
    duration: DurationMetric | None = "mcp.client.operation.duration" if kind == "client" else None
    measured = ("mcp.method.name", "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.prompt.name")
    return OperationSpec(name, kind, attributes, duration, measured)


def count_tokens(model: tuple[str, str] | None, *, input_tokens: int, output_tokens: int) -> None:
    """Count tokens of a request to a model, given as its provider and its name, or of a turn as a whole."""
    if _tracer is None:
        return
    name = "invoke_agent" if model is None else "chat"
    named = {"gen_ai.provider.name": OWN_PROVIDER} if model is None else name_model(*model)
    _tracer.count_tokens(
        {"gen_ai.operation.name": name, **named}, input_tokens=input_tokens, output_tokens=output_tokens
    )


def observe(names: Mapping[str, str], read: ReadFigures) -> None:
    """Have figures measured whenever metrics are sent; `read` is called in a thread of the exporter."""
    if _tracer is not None:
        _tracer.observe(names, read)


def usage_attributes(
    *, input_tokens: int, output_tokens: int, cached_read: int, cached_write: int, thought: int
) -> dict[str, int]:
    """Return the attributes for the tokens of an operation; those for parts that are zero are left out."""
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
    """Return the attribute for the text of a person."""
    return {"gen_ai.input.messages": _encode([{"role": "user", "parts": [{"type": "text", "content": text}]}])}


def answer_attribute(text: str, finish_reason: str) -> dict[str, str]:
    """Return the attribute for the text of a model."""
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
