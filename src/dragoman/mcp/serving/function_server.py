"""A small MCP server for Python functions, independent of the transport."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, cast

import msgspec
from msgspec import Raw

from dragoman import __version__
from dragoman.errors import ErrorCode, InvalidParamsError, MethodNotFoundError, RpcError
from dragoman.mcp.era import (
    BOTH_ERAS,
    CAPABILITIES_KEY,
    LEGACY_VERSIONS,
    MODERN_VERSIONS,
    SERVER_INFO_KEY,
    VERSION_KEY,
    Era,
)
from dragoman.mcp.serving.function_call import FunctionThreads, McpResult, Progress, SendNotification
from dragoman.mcp.serving.function_tool import FunctionTool, UnusableFunctionError, as_tool
from dragoman.telemetry.operation import trace_served_tool

CANCELLED = "notifications/cancelled"

TTL_MS = 24 * 3600 * 1000
"""How long a modern client may cache the list of tools, which never changes."""

ToolFunction = FunctionTool | Callable[..., Any]
"""A tool: a function, or a FunctionTool with its own name and description."""


class _Meta(msgspec.Struct, rename="camel"):
    progress_token: str | int | None = None


class _Initialize(msgspec.Struct, rename="camel"):
    protocol_version: str


class _Call(msgspec.Struct):
    name: str
    arguments: dict[str, Any] | None = None
    meta: _Meta | None = msgspec.field(name="_meta", default=None)


class FunctionServer:
    """The tools, shared by any number of sessions. Raises UnusableFunctionError."""

    def __init__(self, tools: Iterable[ToolFunction], name: str = "functions") -> None:
        self.name = name
        self.tools: dict[str, FunctionTool] = {}
        self.threads = FunctionThreads()
        for tool in map(as_tool, tools):
            if tool.name in self.tools:
                raise UnusableFunctionError(tool.name, "two functions have this name; rename one with FunctionTool")
            self.tools[tool.name] = tool


class FunctionSession:
    """One client's MCP session with the functions. If both eras are allowed, each request shows its era."""

    def __init__(self, server: FunctionServer, eras: frozenset[Era] = BOTH_ERAS) -> None:
        self._server = server
        self._eras = eras
        self._calls: dict[bytes, asyncio.Task[McpResult]] = {}

    async def answer(
        self, method: str, params: dict[str, Any], request_id: bytes, notify: SendNotification
    ) -> McpResult:
        """Answer a request. `request_id` is the id as JSON, and `notify` sends notifications. Raises RpcError."""
        if Era.MODERN in self._eras and (Era.LEGACY not in self._eras or VERSION_KEY in _meta_of(params)):
            return await self._answer_modern(method, params, request_id, notify)
        match method:
            case "initialize":
                return self._initialize(_fit(params, _Initialize))
            case "ping":
                return {}
            case "tools/list":
                return self._list()
            case "tools/call":
                return await self._call(params, request_id, notify)
            case _:
                raise MethodNotFoundError(method)

    async def _answer_modern(
        self, method: str, params: dict[str, Any], request_id: bytes, notify: SendNotification
    ) -> McpResult:
        _check_meta(_meta_of(params))
        cached = {"resultType": "complete", "ttlMs": TTL_MS, "cacheScope": "private"}
        match method:
            case "server/discover":
                return {**self._describe(), "supportedVersions": list(MODERN_VERSIONS), **cached}
            case "tools/list":
                return {**self._list(), **cached}
            case "tools/call":
                result = await self._call(params, request_id, notify)
                return {**result, "resultType": "complete"}
            case _:
                raise MethodNotFoundError(method)

    def receive(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification. Only a cancellation has an effect."""
        if method == CANCELLED and "requestId" in params:
            call = self._calls.get(msgspec.json.encode(params["requestId"]))
            if call is not None:
                call.cancel()

    def close(self) -> None:
        """Cancel the running calls."""
        for call in self._calls.values():
            call.cancel()

    def _initialize(self, params: _Initialize) -> McpResult:
        asked = params.protocol_version
        return {
            "protocolVersion": asked if asked in LEGACY_VERSIONS else LEGACY_VERSIONS[-1],
            "capabilities": {"tools": {}},
            "serverInfo": self._info(),
        }

    def _describe(self) -> McpResult:
        return {"capabilities": {"tools": {}}, "_meta": {SERVER_INFO_KEY: self._info()}}

    def _info(self) -> dict[str, str]:
        return {"name": self._server.name, "version": __version__}

    def _list(self) -> McpResult:
        return {"tools": [tool.definition for tool in self._server.tools.values()]}

    async def _call(self, call: dict[str, Any], request_id: bytes, notify: SendNotification) -> McpResult:
        params, meta = _fit(call, _Call), _meta_of(call)
        tool = self._server.tools.get(params.name)
        if tool is None:
            expected = ", ".join(self._server.tools)
            raise InvalidParamsError(
                "name", f"there is no tool {params.name!r}; expected one of {expected}", expected=expected
            )
        progress = Progress(params.meta.progress_token if params.meta else None)
        with trace_served_tool(params.name, meta) as operation:
            result = await self._run(tool, params, request_id, notify, progress)
            if result.get("isError") is True:
                operation.fail("tool_error")
            return result

    async def _run(
        self, tool: FunctionTool, params: _Call, request_id: bytes, notify: SendNotification, progress: Progress
    ) -> McpResult:
        call = asyncio.create_task(tool.call(params.arguments or {}, progress, self._server.threads))
        self._calls[request_id] = call
        try:
            async with progress.sending_reports(notify):
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
    """Return the parameters of a message. Raises InvalidParamsError if they are not an object."""
    try:
        return msgspec.json.decode(params, type=dict[str, Any] | None) or {}
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidParamsError("params", str(error)) from None


def _fit(params: dict[str, Any], shape: type[Any]) -> Any:
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        raise InvalidParamsError("params", str(error)) from None


def _meta_of(params: dict[str, Any]) -> dict[str, Any]:
    meta = params.get("_meta")
    return cast("dict[str, Any]", meta) if isinstance(meta, dict) else {}


def _check_meta(meta: dict[str, Any]) -> None:
    """Refuse a modern request without the required `_meta` fields. Raises RpcError."""
    version = meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise InvalidParamsError(f"_meta.{VERSION_KEY}", "it is missing; send the version of MCP with each request")
    if version not in MODERN_VERSIONS:
        data = {"supported": list(MODERN_VERSIONS), "requested": version}
        raise RpcError(ErrorCode.UNSUPPORTED_VERSION, data, phrase="Unsupported protocol version")
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise InvalidParamsError(
            f"_meta.{CAPABILITIES_KEY}", "it is missing; send the client's capabilities, or {} for none"
        )
