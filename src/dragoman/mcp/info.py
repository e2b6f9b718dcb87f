"""What a server has told of itself, and what came of a call."""

from typing import Any, Literal, Protocol

import msgspec

from dragoman.protocol import v1

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


class PromptArgument(msgspec.Struct, frozen=True):
    """Something that a prompt wants to know."""

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
    """What a tool gave back; MCP and ACP have the same kinds of content."""

    content: list[v1.ContentBlock]
    structured: Any = None
    failed: bool = False


class ProgressListener(Protocol):
    """Hears how far a call is; total and message where the server tells them."""

    async def __call__(self, progress: float, total: float | None, message: str | None) -> None:
        """Take note."""
        ...


class ServerStatus(msgspec.Struct, frozen=True):
    """How a server is, for clients and people."""

    name: str
    transport: str
    state: ServerState
    tools: int = 0
    reason: str | None = None
