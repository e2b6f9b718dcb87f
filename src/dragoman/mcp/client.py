"""Our side of a conversation with a server: the handshake, our requests, and the server's requests to us."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, cast

import msgspec

from dragoman import __version__
from dragoman.errors import (
    ConnectionClosed,
    ErrorCode,
    InvalidResult,
    MethodNotFound,
    RemoteError,
    RpcError,
    ServerFailure,
)
from dragoman.mcp.channel import Channel
from dragoman.mcp.info import (
    CallResult,
    ProgressListener,
    PromptInfo,
    PromptText,
    ToolInfo,
    read_content,
    read_objects,
    read_prompt,
    read_role,
    read_tool,
)
from dragoman.text import one_line

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of MCP, oldest first; we ask for the last."""

CAPABILITIES: dict[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {"form": {}, "url": {}},
}

DECLINED: dict[str, Any] = {"action": "decline"}
"""The answer to an elicitation that nobody sees."""

MAX_LISTED = 10_000
"""Tools or prompts of one server; more are a mistake, or an attempt to fill our memory."""

MAX_LOGGED = 2_000
"""Characters of a line that a server logs."""

_TROUBLE = frozenset(("warning", "error", "critical", "alert", "emergency"))

_log = logging.getLogger("dragoman.mcp")

T = TypeVar("T")


class Host(Protocol):
    """Answers the requests of a server; requests and answers are the plain JSON of MCP."""

    def roots(self) -> list[str]:
        """Return the directories that the server may work in, as absolute paths."""
        ...

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the person something for the server; the answer is an MCP ElicitResult."""
        ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model something for the server; the answer is an MCP CreateMessageResult. Raises RpcError."""
        ...


class ClientCallbacks(msgspec.Struct, frozen=True):
    """The name of a server, and the functions that its client calls."""

    name: str
    host: Callable[[], Host]
    """Returns the host that answers the server now."""
    on_change: Callable[[], None]
    """Is called when the server's tools or prompts have changed."""
    clean: Callable[[str], str]
    """Hides the server's secrets in a text."""


class _FormQuestion(msgspec.Struct, rename="camel"):
    message: str
    requested_schema: dict[str, Any]


class _UrlQuestion(msgspec.Struct, rename="camel"):
    message: str
    url: str
    elicitation_id: str


class _SamplingQuestion(msgspec.Struct, rename="camel"):
    messages: list[dict[str, Any]]
    max_tokens: int
    system_prompt: str | None = None


class McpClient:
    """Talks with one server over one channel, from `greet` on."""

    def __init__(self, listener: ClientCallbacks) -> None:
        self._listener = listener
        self._channel: Channel | None = None
        self._can: dict[str, Any] = {}
        self._progress: dict[int, ProgressListener] = {}
        self._tokens = count(1)
        self.end = "the server closed the connection"
        """Why the server is gone, once it is."""

    @property
    def closed(self) -> asyncio.Event:
        return self._open.closed

    @property
    def _open(self) -> Channel:
        assert self._channel is not None  # noqa: S101 -- greeted before anything else
        return self._channel

    # ── our requests to the server ─────────────────────────────────────────────────────────────

    async def greet(self, channel: Channel) -> None:
        """Shake hands. This and all the others raise ServerFailure, and ConnectionClosed when the server is gone."""
        self._channel = channel
        params = {
            "protocolVersion": VERSIONS[-1],
            "capabilities": CAPABILITIES,
            "clientInfo": {"name": "dragoman", "title": "Dragoman", "version": __version__},
        }
        result = await self._ask("initialize", params, cancellable=False)
        version = result.get("protocolVersion")
        if version not in VERSIONS:
            shown = one_line(str(version), 40)
            raise ServerFailure(
                f"it speaks version {shown} of MCP, which is not known here; known are {', '.join(VERSIONS)}"
            )
        channel.version = version
        can = result.get("capabilities")
        self._can = cast("dict[str, Any]", can) if isinstance(can, dict) else {}
        await channel.tell("notifications/initialized", {})

    async def tools(self) -> list[ToolInfo]:
        """List all tools, page by page."""
        return await self._list("tools", read_tool) if "tools" in self._can else []

    async def prompts(self) -> list[PromptInfo]:
        """List all prompts, page by page."""
        return await self._list("prompts", read_prompt) if "prompts" in self._can else []

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressListener | None = None) -> CallResult:
        """Call a tool; cancelling the wait cancels it at the server."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        token = next(self._tokens)
        if progress is not None:
            params["_meta"] = {"progressToken": token}
            self._progress[token] = progress
        try:
            result = await self._ask("tools/call", params)
        finally:
            self._progress.pop(token, None)
        content = [read_content(block) for block in read_objects(result, "content", "tools/call")]
        return CallResult(content, result.get("structuredContent"), failed=result.get("isError") is True)

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[PromptText]:
        """Get a prompt, filled in with arguments."""
        result = await self._ask("prompts/get", {"name": name, "arguments": arguments})
        messages = read_objects(result, "messages", "prompts/get")
        return [PromptText(read_role(message), read_content(message.get("content") or {})) for message in messages]

    async def tell_roots(self) -> None:
        """Tell the server that its roots have changed."""
        with suppress(ConnectionClosed):
            await self._open.tell("notifications/roots/list_changed", {})

    async def _list(self, what: Literal["tools", "prompts"], read: Callable[[dict[str, Any]], T | None]) -> list[T]:
        """Read all pages; a cursor that comes a second time ends the list."""
        found: list[T] = []
        cursor: Any = None
        seen: set[str] = set()
        while len(found) < MAX_LISTED:
            result = await self._ask(f"{what}/list", {} if cursor is None else {"cursor": cursor})
            for each in read_objects(result, what, f"{what}/list"):
                item = read(each)
                if item is None:
                    _log.warning("MCP server %s lists one of its %s in a wrong shape", self._listener.name, what)
                else:
                    found.append(item)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
        return found[:MAX_LISTED]

    async def _ask(self, method: str, params: dict[str, Any], *, cancellable: bool = True) -> dict[str, Any]:
        channel = self._open
        try:
            return await channel.ask(method, params, cancellable=cancellable)
        except RemoteError as error:
            if channel.has_forgotten_us:
                self.end = "the server has forgotten this session, as after a restart of its own"
                channel.closed.set()
                raise ConnectionClosed(self.end) from None
            raise ServerFailure(channel.explain(error.message)) from None
        except InvalidResult as error:
            raise ServerFailure(f"its answer breaks the protocol: {error.problem}") from None

    # ── requests and notifications of the server ─────────────────────────────────────────────────

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the server; raises RpcError."""
        name, host = self._listener.name, self._listener.host()
        match method:
            case "ping":
                return {}
            case "roots/list":
                return {"roots": [{"uri": Path(root).as_uri()} for root in host.roots()]}
            case "elicitation/create":
                _check(params, _UrlQuestion if params.get("mode") == "url" else _FormQuestion)
                return await host.elicit(name, params)
            case "sampling/createMessage":
                _check(params, _SamplingQuestion)
                return await host.sample(name, params)
            case _:
                raise MethodNotFound(one_line(method, 100))

    async def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification of the server. It must not wait for an answer of the server, which is read after this."""
        match method:
            case "notifications/progress":
                await self._take_progress(params)
            case "notifications/tools/list_changed" | "notifications/prompts/list_changed":
                self._listener.on_change()
            case "notifications/message":
                level = logging.WARNING if params.get("level") in _TROUBLE else logging.INFO
                words = one_line(self._listener.clean(str(params.get("data"))), MAX_LOGGED)
                _log.log(level, "%s: %s", self._listener.name, words)
            case _:
                pass

    async def _take_progress(self, params: dict[str, Any]) -> None:
        token, done, total = params.get("progressToken"), params.get("progress"), params.get("total")
        message = params.get("message")
        progress = self._progress.get(token) if isinstance(token, int) else None
        if progress is not None and isinstance(done, int | float):
            await progress(
                float(done),
                float(total) if isinstance(total, int | float) else None,
                message if isinstance(message, str) else None,
            )


def _check(params: dict[str, Any], shape: type[msgspec.Struct]) -> None:
    """Refuse parameters without the shape that the protocol gives them; raises RpcError."""
    try:
        msgspec.convert(params, shape)
    except msgspec.ValidationError:
        # Without the decoder's message, which repeats values of the server.
        raise RpcError(ErrorCode.INVALID_PARAMS, "these parameters break the protocol") from None
