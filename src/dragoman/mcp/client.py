"""One conversation with an MCP server: our requests to it, and its requests to us.

A modern server asks for input inside a result. `rounds` handles these. A legacy server sends requests over the channel.
Both kinds of requests are answered in `McpClient.answer`.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

import msgspec

from dragoman.errors import (
    ConnectionClosedError,
    ErrorCode,
    InvalidResultError,
    McpServerError,
    MethodNotFoundError,
    RemoteError,
    RpcError,
)
from dragoman.mcp.channel import Channel
from dragoman.mcp.era import Era
from dragoman.mcp.info import (
    CallResult,
    ProgressListener,
    PromptInfo,
    PromptText,
    ResourceInfo,
    ResourceTemplate,
    ToolInfo,
    hide_in,
    read_completion,
    read_content,
    read_contents,
    read_objects,
    read_prompt,
    read_resource,
    read_role,
    read_template,
    read_tool,
)
from dragoman.mcp.negotiation import McpAgreement, negotiate
from dragoman.mcp.request_headers import InvalidAnnotationError, ParameterPath, find_annotations, parameter_headers
from dragoman.mcp.rounds import RequestRounds, cancel_task
from dragoman.protocol import v1
from dragoman.telemetry.operation import trace_mcp_request
from dragoman.text import one_line

DECLINED: dict[str, Any] = {"action": "decline"}
"""The answer to an elicitation that no user sees."""

MAX_LISTED = 10_000
"""Maximum number of tools or prompts of one server. More are a mistake, or an attempt to fill our memory."""

MAX_TTL_S = 24 * 3600.0
"""Upper limit for the time that a server names for its lists."""

LATE_ANNOUNCEMENT_TIMEOUT_S = 1.0
"""A server that needs longer to answer a ping had enough time to announce a change."""

MAX_LOGGED = 2_000
"""Maximum length in characters of a line that a server logs."""

_LISTS = {
    "tools": "tools/list",
    "prompts": "prompts/list",
    "resources": "resources/list",
    "resourceTemplates": "resources/templates/list",
}
_WARNING_LEVELS = frozenset(("warning", "error", "critical", "alert", "emergency"))

_log = logging.getLogger("dragoman.mcp")

T = TypeVar("T")


class UnknownMethodError(McpServerError):
    """The server does not support a method."""


class Host(Protocol):
    """Answers the requests of a server. Requests and answers are plain MCP JSON."""

    def roots(self) -> list[str]:
        """Return the directories that the server may use, as absolute paths."""
        ...

    async def elicit(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the user for input on behalf of the server. Return an MCP ElicitResult."""
        ...

    async def sample(self, server: str, params: dict[str, Any]) -> dict[str, Any]:
        """Ask the model on behalf of the server. Return an MCP CreateMessageResult. Raises RpcError."""
        ...


def _ignore(_uri: str) -> None:
    return


class ClientCallbacks(msgspec.Struct, frozen=True):
    """The name of a server, and the functions that its client calls."""

    name: str
    host: Callable[[], Host]
    """Returns the host that currently answers the server."""
    on_change: Callable[[], None]
    """Called when the server's tools or prompts changed."""
    clean: Callable[[str], str]
    """Redacts the server's secrets in a text."""
    roots: bool = True
    """Whether the server receives the session's directories."""
    on_resource: Callable[[str], None] = _ignore
    """Called with the URI of a resource that changed."""


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
    """Talks to one server over one channel. Call `negotiate` first."""

    def __init__(self, listener: ClientCallbacks) -> None:
        self._listener = listener
        self._channel: Channel | None = None
        self._agreement: McpAgreement | None = None
        self._rounds = RequestRounds(self._ask, self.answer)
        self._headers: dict[str, Mapping[ParameterPath, str]] = {}
        self._task_tools: frozenset[str] = frozenset()
        self._progress: dict[int, ProgressListener] = {}
        self._tokens = count(1)
        self.ttl_s: float | None = None
        """How long the lists of a modern server stay valid. None if the server does not say."""
        self.end = "the server closed the connection"
        """Why the connection ended. Valid after it ended."""

    @property
    def closed(self) -> asyncio.Event:
        return self._open.closed

    @property
    def agreement(self) -> McpAgreement:
        """The version and capabilities agreed in `negotiate`."""
        assert self._agreement is not None  # noqa: S101 -- negotiated before any other request
        return self._agreement

    @property
    def _open(self) -> Channel:
        assert self._channel is not None  # noqa: S101 -- negotiated before any other request
        return self._channel

    # ── our requests to the server ─────────────────────────────────────────────────────────────

    async def negotiate(
        self, channel: Channel, known: Era | None = None, has_read_all: Callable[[], bool] | None = None
    ) -> McpAgreement:
        """Agree on a version with the server.

        This and all other requests raise McpServerError, and ConnectionClosedError if the server is gone.
        """
        self._channel = channel
        try:
            self._agreement = await negotiate(channel, known, roots=self._listener.roots, has_read_all=has_read_all)
        except RemoteError as error:
            raise McpServerError(error.message) from None
        except InvalidResultError as error:
            raise McpServerError(f"its answer violates the protocol: {error.problem}") from None
        return self._agreement

    async def tools(self) -> list[ToolInfo]:
        """List all tools, page by page. Over HTTP, omit tools with invalid header annotations."""
        listed = await self._list("tools", "tools", read_tool)
        self._task_tools = frozenset(tool.name for tool in listed if tool.needs_task)
        self._headers = {}
        return [tool for tool in listed if self._remember_headers(tool)]

    def _remember_headers(self, tool: ToolInfo) -> bool:
        """Remember which parameters of a tool are sent as headers. Return False if the tool must not be used."""
        if not self.agreement.is_modern:
            return True
        try:
            self._headers[tool.name] = find_annotations(tool.parameters)
        except InvalidAnnotationError as problem:
            _log.warning("MCP server %s: the tool %s is not used: %s", self._listener.name, tool.name, problem)
            return not self._open.sends_headers
        return True

    async def prompts(self) -> list[PromptInfo]:
        """List all prompts, page by page."""
        return await self._list("prompts", "prompts", read_prompt)

    async def resources(self) -> list[ResourceInfo]:
        """List all resources, page by page."""
        return await self._list("resources", "resources", read_resource)

    async def templates(self) -> list[ResourceTemplate]:
        """List all resource templates, page by page. Servers without templates may not know the method."""
        try:
            return await self._list("resources", "resourceTemplates", read_template)
        except UnknownMethodError:
            return []

    @property
    def has_resources(self) -> bool:
        """Whether the server has resources."""
        return "resources" in self.agreement.capabilities

    @property
    def reports_resource_changes(self) -> bool:
        """Whether the server reports when a resource changes."""
        return self._capability("resources").get("subscribe") is True

    async def subscribe(self, uri: str, *, wanted: bool) -> None:
        """Subscribe to the changes of a resource at a legacy server, or unsubscribe."""
        await self._ask("resources/subscribe" if wanted else "resources/unsubscribe", {"uri": uri})

    async def listen_to(self, uris: Sequence[str]) -> None:
        """Ask a modern server to report changes of these resources. Return when the server ends the stream."""
        await self._ask("subscriptions/listen", {"notifications": {"resourceSubscriptions": list(uris)}})

    async def complete(
        self, reference: Mapping[str, str], argument: str, value: str, known: Mapping[str, str]
    ) -> list[str]:
        """Return completions for the value of an argument. Return an empty list if the server does not complete."""
        if "completions" not in self.agreement.capabilities:
            return []
        params: dict[str, Any] = {"ref": dict(reference), "argument": {"name": argument, "value": value}}
        if known:
            params["context"] = {"arguments": dict(known)}
        return read_completion(hide_in(await self._ask("completion/complete", params), self._listener.clean))

    async def read(self, uri: str) -> list[v1.EmbeddedResource]:
        """Read a resource, which may have several parts."""
        result = hide_in(await self._rounds.run("resources/read", {"uri": uri}), self._listener.clean)
        return [read_contents(part) for part in read_objects(result, "contents", "resources/read")]

    async def call(self, tool: str, arguments: dict[str, Any], progress: ProgressListener | None = None) -> CallResult:
        """Call a tool. Cancelling the wait cancels the call at the server."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        token = next(self._tokens)
        if progress is not None:
            params["_meta"] = {"progressToken": token}
            self._progress[token] = progress
        try:
            if not self.agreement.is_modern and tool in self._task_tools:
                result = await self._call_as_task(params)
            else:
                result = await self._call_tool(params)
        finally:
            self._progress.pop(token, None)
        result = hide_in(result, self._listener.clean)
        content = [read_content(block) for block in read_objects(result, "content", "tools/call")]
        return CallResult(content, result.get("structuredContent"), failed=result.get("isError") is True)

    async def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        headers = parameter_headers(self._headers.get(params["name"], {}), params["arguments"])
        return await self._rounds.run("tools/call", params, headers)

    async def _call_as_task(self, params: dict[str, Any]) -> dict[str, Any]:
        """Call a tool that version 2025-11-25 only runs as a task. `tasks/result` waits for its end."""
        result = await self._ask("tools/call", {**params, "task": {}})
        task: Any = result.get("task")
        task_id = cast("dict[str, Any]", task).get("taskId") if isinstance(task, dict) else None
        if not isinstance(task_id, str):
            return result
        try:
            return await self._ask("tasks/result", {"taskId": task_id})
        except asyncio.CancelledError:
            await cancel_task(self._ask, task_id)
            raise

    async def listen(self) -> None:
        """Ask a modern server to report list changes until cancelled. Return when the server ends the stream.

        A legacy server reports changes unasked, so this waits until the connection closes.
        """
        wanted = {
            f"{what}ListChanged": True
            for what in ("tools", "prompts", "resources")
            if self._capability(what).get("listChanged") is True
        }
        if wanted and self.agreement.is_modern:
            await self._ask("subscriptions/listen", {"notifications": wanted})
        else:
            await self.closed.wait()

    @property
    def may_announce_late(self) -> bool:
        """Whether a change may be announced after the response that followed it: over HTTP, on another stream."""
        announces = any(self._capability(what).get("listChanged") is True for what in ("tools", "prompts"))
        return announces and self._open.sends_headers

    async def wait_for_late_announcements(self) -> None:
        """Wait one round trip for announcements on another stream."""
        with suppress(McpServerError, ConnectionClosedError, TimeoutError):
            async with asyncio.timeout(LATE_ANNOUNCEMENT_TIMEOUT_S):
                await self._ask("server/discover" if self.agreement.is_modern else "ping", {})

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[PromptText]:
        """Return the messages of a prompt, filled in with arguments."""
        filled = await self._rounds.run("prompts/get", {"name": name, "arguments": arguments})
        result = hide_in(filled, self._listener.clean)
        messages = read_objects(result, "messages", "prompts/get")
        return [PromptText(read_role(message), read_content(message.get("content") or {})) for message in messages]

    async def notify_roots_changed(self) -> None:
        """Notify the server that its roots have changed, if it receives roots."""
        if not self._listener.roots:
            return
        with suppress(ConnectionClosedError):
            await self._open.notify("notifications/roots/list_changed", {})

    def _capability(self, what: str) -> dict[str, Any]:
        can: Any = self.agreement.capabilities.get(what)
        return cast("dict[str, Any]", can) if isinstance(can, dict) else {}

    async def _list(self, capability: str, what: str, read: Callable[[dict[str, Any]], T | None]) -> list[T]:
        """Read all pages of a list. A cursor that repeats ends the list."""
        found: list[T] = []
        if capability not in self.agreement.capabilities:
            return found
        method = _LISTS[what]
        cursor: Any = None
        seen: set[str] = set()
        while len(found) < MAX_LISTED:
            result = await self._ask(method, {} if cursor is None else {"cursor": cursor})
            for each in read_objects(result, what, method):
                item = read(each)
                if item is None:
                    _log.warning("MCP server %s lists one of its %s in a wrong shape", self._listener.name, what)
                else:
                    found.append(item)
            self._apply_ttl(result)
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or cursor in seen:
                break
            seen.add(cursor)
        return found[:MAX_LISTED]

    def _apply_ttl(self, result: dict[str, Any]) -> None:
        """Remember the shortest time for which the server says that its lists stay valid."""
        ttl_ms = result.get("ttlMs")
        if isinstance(ttl_ms, int | float) and not isinstance(ttl_ms, bool) and ttl_ms > 0:
            self.ttl_s = min(ttl_ms / 1000, self.ttl_s or MAX_TTL_S)

    async def _ask(
        self, method: str, params: dict[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        agreement = self.agreement
        with trace_mcp_request(method, params, self._listener.name, agreement.version) as operation:
            meta = operation.inject(params.get("_meta"))
            if agreement.is_modern:
                meta = {**(meta or {}), **agreement.envelope()}
            if meta is not None:
                params = {**params, "_meta": meta}
            try:
                result = await self._open.ask(method, params, headers=headers)
            except RemoteError as error:
                operation.fail(str(error.code), error.message)
                failure = UnknownMethodError if error.code == ErrorCode.METHOD_NOT_FOUND else McpServerError
                raise failure(error.message) from None
            except InvalidResultError as error:
                raise McpServerError(f"its answer violates the protocol: {error.problem}") from None
            except ConnectionClosedError as end:
                self.end = end.reason
                raise
            if result.get("isError") is True:
                operation.fail("tool_error")
            return result

    # ── requests and notifications of the server ─────────────────────────────────────────────────

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request from the server. Raises RpcError."""
        name, host = self._listener.name, self._listener.host()
        match method:
            case "ping":
                return {}
            case "roots/list" if self._listener.roots:
                return {"roots": [{"uri": Path(root).as_uri()} for root in host.roots()]}
            case "elicitation/create":
                _check_shape(params, _UrlQuestion if params.get("mode") == "url" else _FormQuestion)
                return _fill_defaults(params, await host.elicit(name, self._clean_question(params)))
            case "sampling/createMessage":
                _check_shape(params, _SamplingQuestion)
                return await host.sample(name, hide_in(params, self._listener.clean))
            case _:
                raise MethodNotFoundError(one_line(method, 100))

    async def receive(self, method: str, params: dict[str, Any]) -> None:
        """Handle a notification from the server.

        This must not wait for a response from the server, because that is read only afterwards.
        """
        match method:
            case "notifications/progress":
                await self._report_progress(params)
            case (
                "notifications/tools/list_changed"
                | "notifications/prompts/list_changed"
                | "notifications/resources/list_changed"
            ):
                self._listener.on_change()
            case "notifications/resources/updated":
                if isinstance(uri := params.get("uri"), str):
                    self._listener.on_resource(uri)
            case "notifications/message":
                level = logging.WARNING if params.get("level") in _WARNING_LEVELS else logging.INFO
                text = one_line(self._listener.clean(str(params.get("data"))), MAX_LOGGED)
                _log.log(level, "%s: %s", self._listener.name, text)
            case _:
                pass

    async def _report_progress(self, params: dict[str, Any]) -> None:
        token, done, total = params.get("progressToken"), params.get("progress"), params.get("total")
        message = params.get("message")
        progress = self._progress.get(token) if isinstance(token, int) else None
        if progress is not None and isinstance(done, int | float):
            await progress(
                float(done),
                float(total) if isinstance(total, int | float) else None,
                self._listener.clean(message) if isinstance(message, str) else None,
            )

    def _clean_question(self, params: dict[str, Any]) -> dict[str, Any]:
        """Redact the server's secrets in a question. The URL that the user opens is unchanged."""
        address = {"url": params["url"]} if params.get("mode") == "url" else {}
        return {**hide_in(params, self._listener.clean), **address}


def _fill_defaults(question: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
    """Add the form's defaults for the fields that the user left out."""
    schema: Any = question.get("requestedSchema")
    fields: Any = cast("dict[str, Any]", schema).get("properties") if isinstance(schema, dict) else None
    if answer.get("action") != "accept" or not isinstance(fields, dict):
        return answer
    defaults = {
        name: cast("dict[str, Any]", field)["default"]
        for name, field in cast("dict[str, Any]", fields).items()
        if isinstance(field, dict) and "default" in field
    }
    values: dict[str, Any] = answer.get("content") or {}
    return {**answer, "content": {**defaults, **values}}


def _check_shape(params: dict[str, Any], shape: type[msgspec.Struct]) -> None:
    """Refuse parameters that do not have the protocol's shape. Raises RpcError."""
    try:
        msgspec.convert(params, shape)
    except msgspec.ValidationError:
        # Without the decoder's message, which repeats values of the server.
        raise RpcError(ErrorCode.INVALID_PARAMS, "these parameters violate the protocol") from None
