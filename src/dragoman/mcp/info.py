"""The tools, prompts, results and status of a server, and the functions that read them from its JSON."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, cast

import msgspec

from dragoman.errors import McpServerError
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

_BINARY = frozenset(("data", "blob"))
"""Fields with base64 content."""

ServerState = Literal["connecting", "ready", "failed", "stopped"]


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool of a server, under the server's name for it."""

    name: str
    parameters: dict[str, Any]
    """The JSON schema of an object."""
    title: str = ""
    description: str = ""
    reads_only: bool = False
    """A hint from the server, which may be wrong."""
    needs_task: bool = False
    """Whether a legacy server only runs the tool as a task."""


class ResourceInfo(msgspec.Struct, frozen=True):
    """A resource that a server offers."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""


class ResourceTemplate(msgspec.Struct, frozen=True):
    """A family of resources: a URI template with variables in braces, as in RFC 6570."""

    uri_template: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""


class PromptArgument(msgspec.Struct, frozen=True):
    """A parameter of a prompt."""

    name: str
    description: str = ""
    required: bool = False


class PromptInfo(msgspec.Struct, frozen=True):
    """A prompt that a server offers."""

    name: str
    title: str = ""
    description: str = ""
    arguments: tuple[PromptArgument, ...] = ()


class PromptText(msgspec.Struct, frozen=True):
    """One message of a filled-in prompt."""

    role: Literal["user", "assistant"]
    content: v1.ContentBlock


class CallResult(msgspec.Struct, frozen=True):
    """The result of a tool. MCP and ACP use the same content types."""

    content: list[v1.ContentBlock]
    structured: Any = None
    failed: bool = False


class ProgressListener(Protocol):
    """Receives the progress of a call. `total` and `message` are None if the server does not send them."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Receive a progress report."""
        ...


class ServerStatus(msgspec.Struct, frozen=True):
    """The state of a server, for clients and users."""

    name: str
    transport: str
    state: ServerState
    tools: int = 0
    reason: str | None = None


def hide_in(result: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """Return a result with the server's secrets redacted in every text. Images and other binary data are unchanged."""
    return {key: value if key in _BINARY else _hide(value, clean) for key, value in result.items()}


def _hide(value: Any, clean: Callable[[str], str]) -> Any:
    match value:
        case str():
            return clean(value)
        case dict():
            return hide_in(cast("dict[str, Any]", value), clean)
        case list():
            return [_hide(each, clean) for each in cast("list[Any]", value)]
        case _:
            return value


def read_objects(result: dict[str, Any], key: str, method: str) -> Sequence[dict[str, Any]]:
    """Return a required list of objects from a result. Raises McpServerError."""
    found: Any = result.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in cast("list[Any]", found)):
        raise McpServerError(f"its answer violates the protocol: the {key} of {method} are not a list of objects")
    return cast("list[dict[str, Any]]", found)


def read_tool(raw: dict[str, Any]) -> ToolInfo | None:
    """Read a tool from `tools/list`. Return None if its shape is invalid."""
    name, parameters = raw.get("name"), raw.get("inputSchema")
    if not isinstance(name, str) or not name or not isinstance(parameters, dict):
        return None
    execution: Any = raw.get("execution")
    task = cast("dict[str, Any]", execution).get("taskSupport") if isinstance(execution, dict) else None
    annotations: Any = raw.get("annotations")
    hints = cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
    return ToolInfo(
        name,
        cast("dict[str, Any]", parameters),
        title=_text(raw, "title") or _text(hints, "title"),
        description=_text(raw, "description"),
        reads_only=hints.get("readOnlyHint") is True,
        needs_task=task == "required",
    )


def read_prompt(raw: dict[str, Any]) -> PromptInfo | None:
    """Read a prompt from `prompts/list`. Return None if its shape is invalid."""
    name, entries = raw.get("name"), cast("Any", raw.get("arguments") or [])
    if not isinstance(name, str) or not isinstance(entries, list):
        return None
    listed = [cast("dict[str, Any]", each) for each in cast("list[Any]", entries) if isinstance(each, dict)]
    arguments = tuple(
        PromptArgument(_text(each, "name"), _text(each, "description"), required=each.get("required") is True)
        for each in listed
        if _text(each, "name")
    )
    return PromptInfo(name, _text(raw, "title"), _text(raw, "description"), arguments)


def read_resource(raw: dict[str, Any]) -> ResourceInfo | None:
    """Read a resource from `resources/list`. Return None if its shape is invalid."""
    uri, name = _text(raw, "uri"), _text(raw, "name")
    if not uri:
        return None
    return ResourceInfo(uri, name or uri, _text(raw, "title"), _text(raw, "description"), _text(raw, "mimeType"))


def read_template(raw: dict[str, Any]) -> ResourceTemplate | None:
    """Read a template from `resources/templates/list`. Return None if its shape is invalid."""
    uri, name = _text(raw, "uriTemplate"), _text(raw, "name")
    if not uri:
        return None
    return ResourceTemplate(uri, name or uri, _text(raw, "title"), _text(raw, "description"), _text(raw, "mimeType"))


def read_completion(result: dict[str, Any]) -> list[str]:
    """Return the values of a `completion/complete` result. Raises McpServerError."""
    completion: Any = result.get("completion")
    values: Any = cast("dict[str, Any]", completion).get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list):
        raise McpServerError("its answer violates the protocol: a completion has no list of values")
    return [each for each in cast("list[Any]", values) if isinstance(each, str)]


def read_contents(part: dict[str, Any]) -> v1.EmbeddedResource:
    """Read a part of a resource. Raises McpServerError."""
    try:
        return msgspec.convert({"type": "resource", "resource": part}, v1.EmbeddedResource, dec_hook=decode_hook)
    except msgspec.ValidationError:
        raise McpServerError("its answer violates the protocol: a resource is neither a text nor a blob") from None


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def read_role(message: dict[str, Any]) -> Literal["user", "assistant"]:
    """Read the role of a prompt's message. An unknown role counts as the user."""
    return "assistant" if message.get("role") == "assistant" else "user"


def read_content(block: Any) -> v1.ContentBlock:
    """Read a content block. ACP uses the same types as MCP. An unknown type becomes its JSON as text."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(block, v1.ContentBlock, dec_hook=decode_hook)
    with suppress(msgspec.ValidationError, TypeError):  # keep the content if only its annotations are invalid
        return msgspec.convert({**block, "annotations": None, "_meta": None}, v1.ContentBlock, dec_hook=decode_hook)
    return v1.TextContent(text=msgspec.json.encode(block).decode())
