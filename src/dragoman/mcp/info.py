"""The tools, prompts, results and status of a server, and the readers that make them of its JSON."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Literal, Protocol, cast

import msgspec

from dragoman.errors import ServerFailure
from dragoman.protocol import v1
from dragoman.protocol.unions import decode_hook

_BINARY = frozenset(("data", "blob"))
"""Fields whose text is base64."""

ServerState = Literal["connecting", "ready", "failed", "stopped"]


class ToolInfo(msgspec.Struct, frozen=True):
    """A tool of a server, under the server's own name for it."""

    name: str
    parameters: dict[str, Any]
    """A JSON schema of an object."""
    title: str = ""
    description: str = ""
    reads_only: bool = False
    """A hint of the server, which may be wrong or a lie."""
    destructive: bool = False
    """As above."""
    needs_task: bool = False
    """Whether a legacy server runs it as a task only."""


class ResourceInfo(msgspec.Struct, frozen=True):
    """A resource that a server offers."""

    uri: str
    name: str
    title: str = ""
    description: str = ""
    mime_type: str = ""


class ResourceTemplate(msgspec.Struct, frozen=True):
    """A family of resources: an address with variables in braces, as RFC 6570 has them."""

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
    """One message of a prompt that was filled in."""

    role: Literal["user", "assistant"]
    content: v1.ContentBlock


class CallResult(msgspec.Struct, frozen=True):
    """The result of a tool; MCP and ACP have the same kinds of content."""

    content: list[v1.ContentBlock]
    structured: Any = None
    failed: bool = False


class ProgressListener(Protocol):
    """Is told the progress of a call; total and message where the server gives them."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take a report."""
        ...


class ServerStatus(msgspec.Struct, frozen=True):
    """The state of a server, for clients and people."""

    name: str
    transport: str
    state: ServerState
    tools: int = 0
    reason: str | None = None


def hide_in(result: dict[str, Any], clean: Callable[[str], str]) -> dict[str, Any]:
    """Return a result with the server's secrets hidden in every text; images and the like stay as they are."""
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
    """Return a list of objects that a result must have; raises ServerFailure."""
    found: Any = result.get(key)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in cast("list[Any]", found)):
        raise ServerFailure(f"its answer breaks the protocol: the {key} of {method} are no list of objects")
    return cast("list[dict[str, Any]]", found)


def read_tool(raw: dict[str, Any]) -> ToolInfo | None:
    """Read a tool of `tools/list`; None when it has a wrong shape."""
    name, parameters = raw.get("name"), raw.get("inputSchema")
    if not isinstance(name, str) or not name or not isinstance(parameters, dict):
        return None
    execution: Any = raw.get("execution")
    task = cast("dict[str, Any]", execution).get("taskSupport") if isinstance(execution, dict) else None
    given: Any = raw.get("annotations")
    hints = cast("dict[str, Any]", given) if isinstance(given, dict) else {}
    return ToolInfo(
        name,
        cast("dict[str, Any]", parameters),
        title=_text(raw, "title") or _text(hints, "title"),
        description=_text(raw, "description"),
        reads_only=hints.get("readOnlyHint") is True,
        destructive=hints.get("destructiveHint") is True,
        needs_task=task == "required",
    )


def read_prompt(raw: dict[str, Any]) -> PromptInfo | None:
    """Read a prompt of `prompts/list`; None when it has a wrong shape."""
    name, given = raw.get("name"), cast("Any", raw.get("arguments") or [])
    if not isinstance(name, str) or not isinstance(given, list):
        return None
    listed = [cast("dict[str, Any]", each) for each in cast("list[Any]", given) if isinstance(each, dict)]
    arguments = tuple(
        PromptArgument(_text(each, "name"), _text(each, "description"), required=each.get("required") is True)
        for each in listed
        if _text(each, "name")
    )
    return PromptInfo(name, _text(raw, "title"), _text(raw, "description"), arguments)


def read_resource(raw: dict[str, Any]) -> ResourceInfo | None:
    """Read a resource of `resources/list`; None when it has a wrong shape."""
    uri, name = _text(raw, "uri"), _text(raw, "name")
    if not uri:
        return None
    return ResourceInfo(uri, name or uri, _text(raw, "title"), _text(raw, "description"), _text(raw, "mimeType"))


def read_template(raw: dict[str, Any]) -> ResourceTemplate | None:
    """Read a template of `resources/templates/list`; None when it has a wrong shape."""
    uri, name = _text(raw, "uriTemplate"), _text(raw, "name")
    if not uri:
        return None
    return ResourceTemplate(uri, name or uri, _text(raw, "title"), _text(raw, "description"), _text(raw, "mimeType"))


def read_completion(result: dict[str, Any]) -> list[str]:
    """Read the values of `completion/complete`; raises ServerFailure."""
    completion: Any = result.get("completion")
    values: Any = cast("dict[str, Any]", completion).get("values") if isinstance(completion, dict) else None
    if not isinstance(values, list):
        raise ServerFailure("its answer breaks the protocol: a completion has no list of values")
    return [each for each in cast("list[Any]", values) if isinstance(each, str)]


def read_contents(part: dict[str, Any]) -> v1.EmbeddedResource:
    """Read a part of a resource; raises ServerFailure."""
    try:
        return msgspec.convert({"type": "resource", "resource": part}, v1.EmbeddedResource, dec_hook=decode_hook)
    except msgspec.ValidationError:
        raise ServerFailure("its answer breaks the protocol: a resource is neither a text nor a blob") from None


def _text(raw: dict[str, Any], key: str) -> str:
    value = raw.get(key)
    return value if isinstance(value, str) else ""


def read_role(message: dict[str, Any]) -> Literal["user", "assistant"]:
    """Read the role of a prompt's message; an unknown one counts as the user."""
    return "assistant" if message.get("role") == "assistant" else "user"


def read_content(block: Any) -> v1.ContentBlock:
    """Read a content block, whose kinds ACP took over from MCP; a block of an unknown kind becomes its JSON as text."""
    with suppress(msgspec.ValidationError):
        return msgspec.convert(block, v1.ContentBlock, dec_hook=decode_hook)
    with suppress(msgspec.ValidationError, TypeError):  # wrong annotations are no reason to lose the content
        return msgspec.convert({**block, "annotations": None, "_meta": None}, v1.ContentBlock, dec_hook=decode_hook)
    return v1.TextContent(text=msgspec.json.encode(block).decode())
