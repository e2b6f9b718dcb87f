"""A small MCP server for Python functions: its answers, independent of the transport."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Raw

from dragoman import __version__
from dragoman.errors import ErrorCode, InvalidParams, MethodNotFound, RpcError
from dragoman.mcp.era import LEGACY_VERSIONS
from dragoman.mcp.serving.function_call import FunctionThreads, McpResult, Progress, Tell
from dragoman.mcp.serving.function_tool import FunctionTool, UnusableFunction, as_tool

CANCELLED = "notifications/cancelled"

ToolFunction = FunctionTool | Callable[..., Any]
"""A tool: a function, or a FunctionTool with a name and a description of its own."""


class _Meta(msgspec.Struct, rename="camel"):
    progress_token: str | int | None = None


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str


class _Call(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class FunctionServer:
    """The tools, for any number of sessions at a time. Raises UnusableFunction."""

    def __init__(self, tools: Iterable[ToolFunction], name: str = "functions") -> None:
        self.name = name
        self.tools: dict[str, FunctionTool] = {}
        self.threads = FunctionThreads()
        for tool in map(as_tool, tools):
            if tool.name in self.tools:
                raise UnusableFunction(tool.name, "there are two of that name; give one another by FunctionTool")
            self.tools[tool.name] = tool


class FunctionSession:
    """One client's MCP session with the functions."""

    def __init__(self, server: FunctionServer) -> None:
        self._server = server
        self._calls: dict[bytes, asyncio.Task[McpResult]] = {}

    async def answer(self, method: str, params: dict[str, Any], request_id: bytes, tell: Tell) -> McpResult:
        """Answer a request, whose id is the JSON that came; `tell` sends its notifications. Raises RpcError."""
        match method:
            case "initialize":
                return self._initialize(_fit(params, _Initialize))
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.definition for tool in self._server.tools.values()]}
            case "tools/call":
                return await self._call(_fit(params, _Call), request_id, tell)
            case _:
                raise MethodNotFound(method)

    def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification; only a cancellation has an effect here."""
        if method == CANCELLED and "requestId" in params:
            call = self._calls.get(msgspec.json.encode(params["requestId"]))
            if call is not None:
                call.cancel()

    def close(self) -> None:
        """Cancel the calls that still run."""
        for call in self._calls.values():
            call.cancel()

    def _initialize(self, params: _Initialize) -> McpResult:
        asked = params.protocol_version
        return {
            # Newer clients fall back to `initialize`, because `server/discover` is unknown here.
            "protocolVersion": asked if asked in LEGACY_VERSIONS else LEGACY_VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self._server.name, "version": __version__},
        }

    async def _call(self, params: _Call, request_id: bytes, tell: Tell) -> McpResult:
        tool = self._server.tools.get(params.name)
        if tool is None:
            expected = ", ".join(self._server.tools)
            raise InvalidParams(
                "name", f"there is no tool {params.name!r}; expected one of {expected}", expected=expected
            )
        progress = Progress(params.meta.progress_token if params.meta else None)
        call = asyncio.create_task(tool.call(params.arguments or {}, progress, self._server.threads))
        self._calls[request_id] = call
        try:
            async with progress.telling(tell):
                return await call
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RpcError(ErrorCode.REQUEST_CANCELLED) from None
        finally:
            call.cancel()
            if self._calls.get(request_id) is call:
                del self._calls[request_id]


def decode_params(params: Raw) -> dict[str, Any]:
    """Return the parameters of a message; raises InvalidParams when they are no object."""
    try:
        return msgspec.json.decode(params, type=dict[str, Any] | None) or {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidParams("params", str(error)) from None


def _fit(params: dict[str, Any], shape: type[Any]) -> Any:
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        raise InvalidParams("params", str(error)) from None
