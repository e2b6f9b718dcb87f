"""A conversation with a server, from the handshake on. The SDK is imported here, so this module comes on first need."""

import asyncio
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import httpx2
import mcp_types as types
import msgspec
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel, ValidationError

from dragoman import __version__
from dragoman.errors import ConnectionClosed, ServerFailure
from dragoman.mcp.definition import AcpServer, Definition, HttpServer, SseServer, StdioServer
from dragoman.mcp.dispatcher import PeerDispatcher
from dragoman.mcp.ears import Ears, Listener, plain
from dragoman.mcp.http import HttpDispatcher, check_headers, explain_http, open_http
from dragoman.mcp.info import CallResult, Progress, PromptArgument, PromptInfo, PromptText, ToolInfo
from dragoman.mcp.over_acp import AcpDispatcher
from dragoman.mcp.sse import SseTransport
from dragoman.mcp.switchboard import Switchboard
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.unions import decode_hook
from dragoman.wire import Transport

MAX_LISTED = 10_000
"""Tools or prompts of one server: more are a mistake, or an attempt to fill our memory."""

Dispatcher = PeerDispatcher | AcpDispatcher | HttpDispatcher

M = TypeVar("M", bound=BaseModel)

_log = logging.getLogger("dragoman.mcp")

for _name in ("mcp", "client", "httpx2", "httpcore2"):
    # They log addresses and whole messages, which may hold secrets.
    logging.getLogger(_name).setLevel(logging.CRITICAL + 1)


class Way(msgspec.Struct, frozen=True):
    """How a server is reached: over a program's pipes, over the client, or by itself over the network."""

    stdio: Transport | None = None
    connection: Connection | None = None
    switchboard: Switchboard | None = None


@asynccontextmanager
async def open_link(definition: Definition, way: Way, listener: Listener) -> "AsyncGenerator[Link]":
    """Greet a server. Raises ServerFailure, ConnectionClosed, RemoteError, or an httpx2 error, maybe inside groups."""
    async with _dispatcher(definition, way) as dispatcher:
        ears = Ears(listener)
        session = ClientSession(
            dispatcher=dispatcher,
            client_info=types.Implementation(name="dragoman", title="Dragoman", version=__version__),
            list_roots_callback=ears.roots,
            elicitation_callback=ears.elicit,
            sampling_callback=ears.sample,
            logging_callback=ears.log,
            message_handler=ears.hear,
        )
        async with session:
            link = Link(session, dispatcher)
            await link.greet()
            yield link


class Link:
    """A server that answers; `closed` is set when it is gone."""

    def __init__(self, session: ClientSession, dispatcher: Dispatcher) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self.end = "the server closed the connection"
        """Why it is gone, once it is."""

    @property
    def closed(self) -> asyncio.Event:
        return self._dispatcher.closed

    async def greet(self) -> None:
        """Shake hands; the way of newer servers is tried when a server does not know the common one.

        The SDK would try the newer way first, and wait ten seconds for a server that ignores what it does not know.
        """
        with self._translated():
            try:
                await self._session.initialize()
            except MCPError as error:
                if error.code not in (types.METHOD_NOT_FOUND, types.UNSUPPORTED_PROTOCOL_VERSION):
                    raise
                self._session.adopt(await self._session.discover())

    async def tools(self) -> list[ToolInfo]:
        """List all tools, page by page; raises as `call` does."""
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return []

        async def page(params: types.PaginatedRequestParams | None) -> tuple[Sequence[types.Tool], str | None]:
            result = await self._session.list_tools(params=params)
            return result.tools, result.next_cursor

        with self._translated():
            return [_tool(tool) for tool in await _all_pages(page)]

    async def prompts(self) -> list[PromptInfo]:
        """List all prompts; raises as `call` does."""
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.prompts is None:
            return []

        async def page(params: types.PaginatedRequestParams | None) -> tuple[Sequence[types.Prompt], str | None]:
            result = await self._session.list_prompts(params=params)
            return result.prompts, result.next_cursor

        with self._translated():
            return [_prompt(prompt) for prompt in await _all_pages(page)]

    async def call(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> CallResult:
        """Call a tool; cancelling the wait cancels it at the server. Raises ServerFailure and ConnectionClosed."""
        with self._translated():
            result = await self._session.call_tool(tool, arguments, progress_callback=progress)
        content = [_content(block) for block in result.content]
        return CallResult(content, result.structured_content, failed=result.is_error or False)

    async def prompt(self, name: str, arguments: dict[str, str]) -> list[PromptText]:
        """Have a prompt filled in; raises as `call` does."""
        with self._translated():
            result = await self._session.get_prompt(name, arguments)
        return [PromptText(message.role, _content(message.content)) for message in result.messages]

    async def tell_roots(self) -> None:
        """Tell the server that its roots are other ones now."""
        await self._session.send_notification(types.RootsListChangedNotification())

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Make the SDK's errors ours."""
        try:
            yield
        except MCPError as error:
            if error.code == types.CONNECTION_CLOSED:
                raise ConnectionClosed(self.end) from None
            if self._dispatcher.has_forgotten_us:
                self.end = "the server has forgotten this session, as after a restart of its own"
                self._dispatcher.closed.set()
                raise ConnectionClosed(self.end) from None
            raise ServerFailure(self._dispatcher.explain(error.message)) from None
        except ValidationError as error:
            problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
            where = ".".join(str(step) for step in problem["loc"])
            raise ServerFailure(f"its answer breaks the protocol: {where}: {problem['msg']}") from None
        except RuntimeError as error:  # how the SDK speaks of results that do not fit the tool's own schema
            raise ServerFailure(str(error)) from None


def explain(error: BaseException, clean: Callable[[str], str]) -> str:
    """Say what kept a server from being reached, in words without its address; what is not known here is logged."""
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return explain_http(error)
    _log.error("an MCP server failed in an unknown way: %s", clean("".join(traceback.format_exception(error))))
    return f"it failed in a way that is not known here ({type(error).__name__}); the log on stderr has the details"


@asynccontextmanager
async def _dispatcher(definition: Definition, way: Way) -> AsyncGenerator[Dispatcher]:
    match definition:
        case StdioServer():
            assert way.stdio is not None  # noqa: S101 -- whoever connects to a program has started it
            yield PeerDispatcher(way.stdio, "stdio")
        case SseServer():
            yield PeerDispatcher(SseTransport(definition.url, check_headers(definition.headers)), "sse")
        case AcpServer():
            if way.connection is None or way.switchboard is None:
                raise ServerFailure("it lives inside an ACP client, and there is none here")
            yield AcpDispatcher(way.connection, way.switchboard, definition.server_id)
        case HttpServer():
            async with open_http(definition) as dispatcher:
                yield dispatcher


async def _all_pages(
    page: Callable[[types.PaginatedRequestParams | None], Awaitable[tuple[Sequence[M], str | None]]],
) -> list[M]:
    """Turn all pages, as long as they are new ones."""
    items, cursor = await page(None)
    found, seen = list(items), {cursor}
    while cursor is not None and len(found) < MAX_LISTED:
        items, cursor = await page(types.PaginatedRequestParams(cursor=cursor))
        found += items
        if cursor in seen:
            break
        seen.add(cursor)
    return found[:MAX_LISTED]


def _tool(tool: types.Tool) -> ToolInfo:
    hints = tool.annotations or types.ToolAnnotations()
    return ToolInfo(
        tool.name,
        tool.input_schema,
        title=tool.title or hints.title or "",
        description=tool.description or "",
        reads_only=hints.read_only_hint or False,
        destructive=hints.destructive_hint or False,
    )


def _prompt(prompt: types.Prompt) -> PromptInfo:
    arguments = tuple(
        PromptArgument(argument.name, argument.description or "", required=argument.required or False)
        for argument in prompt.arguments or ()
    )
    return PromptInfo(prompt.name, prompt.title or "", prompt.description or "", arguments)


def _content(block: BaseModel) -> v1.ContentBlock:
    """ACP took over the kinds of content that MCP has; what is of no such kind is shown as the JSON that it is."""
    data = plain(block)
    try:
        return msgspec.convert(data, v1.ContentBlock, dec_hook=decode_hook)
    except msgspec.ValidationError:
        return v1.TextContent(text=msgspec.json.encode(data).decode())
