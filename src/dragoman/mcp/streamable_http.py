"""A channel to a server over streamable HTTP, in both eras.

We send each message as a POST. The response is one JSON object, or a stream of events that ends with the answer.

    legacy  The server names a session in a header, and a DELETE ends it. A GET opens a stream for the server's own
            messages. A stream that breaks is resumed with `Last-Event-ID`. The server may send requests in any stream.
    modern  None of these. Headers repeat the method and the name. Closing a stream cancels its request.

The SDK has this transport as well. It reads bodies of any size and hides the status and body of a refusal. Its import
delays the first server by 0.7 s.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import Any, cast
from urllib.parse import urljoin

import httpx2
import msgspec

from dragoman.errors import (
    ConnectionClosedError,
    DragomanError,
    InvalidResultError,
    McpServerError,
    RemoteError,
    RpcError,
)
from dragoman.library_logs import unlogged
from dragoman.mcp.authorisation import Authoriser, ServerAuthorisation
from dragoman.mcp.channel import CANCELLED, HttpStatusError, InboundHandler, SessionForgottenError
from dragoman.mcp.definition import HttpServer
from dragoman.mcp.era import BOTH_ERAS, MODERN_VERSIONS
from dragoman.mcp.http_errors import (
    bound_body,
    check_headers,
    explain_http,
    explain_type,
    read_bounded,
    refusal_of,
    same_origin,
)
from dragoman.mcp.request_headers import request_headers
from dragoman.wire import MAX_LINE_BYTES, error_object

TIMEOUT = httpx2.Timeout(30.0, read=3600.0)
"""A tool may work for a long time before it sends anything. Calls have their own timeout."""

GOODBYE_TIMEOUT_S = 2.0
"""How long to wait for the response to the DELETE of a session, or to a cancellation."""

RETRY_S = 1.0
"""The pause before a broken stream is resumed, if the server does not set one."""

MAX_RETRY_S = 60.0

STREAM_WAIT_S = 0.2
"""How long the first request waits for the stream of the server's own messages."""

MAX_RESUMPTIONS = 3
"""Maximum number of consecutive resumptions of a stream without an event."""

MAX_DOUBLINGS = 6
"""Maximum number of doublings of the pause before an empty stream is opened again."""

MAX_REDIRECTS = 3

_ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_KEEPING_METHOD = frozenset((307, 308))

_log = logging.getLogger("dragoman.mcp")


class _Cursor:
    """The position in an event stream: the last event id, and when to resume."""

    def __init__(self) -> None:
        self.event_id = ""
        self.retry_s = RETRY_S
        self.failures = 0

    def note(self, event: httpx2.ServerSentEvent) -> None:
        self.event_id = event.id or self.event_id
        self.failures = 0
        if event.retry is not None:
            self.retry_s = min(event.retry / 1000, MAX_RETRY_S)


class HttpChannel:
    """A channel over POSTs. After the negotiation, each POST carries `version`."""

    eras = BOTH_ERAS
    sends_headers = True
    can_ping = False

    def __init__(
        self, url: str, client: httpx2.AsyncClient, inbound: InboundHandler, tasks: "_BackgroundTasks"
    ) -> None:
        self.closed = asyncio.Event()
        self.version: str | None = None
        self._url = url
        self._client = client
        self._inbound = inbound
        self._tasks = tasks
        self._ids = count(1)
        self._session: str | None = None
        self._unanswered: set[int] = set()
        self._stray_answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._answering: dict[Any, asyncio.Task[None]] = {}

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    async def ask(
        self,
        method: str,
        params: dict[str, Any],
        *,
        cancellable: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        request_id = next(self._ids)
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        self._unanswered.add(request_id)
        try:
            with unlogged(), self._translated():
                return await self._exchange(method, message, {**self._headers(method, params), **(headers or {})})
        except asyncio.CancelledError:
            if cancellable and not self._is_modern:
                self._tasks.start(self._cancel_request(request_id))
            raise
        finally:
            self._unanswered.discard(request_id)
            self._stray_answers.pop(request_id, None)

    async def notify(self, method: str, params: dict[str, Any]) -> None:
        if self._is_modern:
            return  # the client sends no notifications in the modern era
        with unlogged(), self._translated():
            await self._post({"jsonrpc": "2.0", "method": method, "params": params})
        if method == "notifications/initialized":
            opened = asyncio.Event()
            self._tasks.start(self._listen(opened))
            # Send the next request after the stream is open, so that the server can use the stream for that request's
            # messages.
            with suppress(TimeoutError):
                async with asyncio.timeout(STREAM_WAIT_S):
                    await opened.wait()

    async def _exchange(self, method: str, message: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        """Send a request and return its result."""
        cursor = _Cursor()
        async with self._posting(message, headers) as response:
            if method == "initialize":
                self._session = response.headers.get("mcp-session-id")
            match _media_type(response):
                case "application/json":
                    return _read_answer(method, await read_bounded(response, MAX_LINE_BYTES), message["id"])
                case "text/event-stream":
                    answer = await self._read_events(response, cursor, method, message["id"])
                case other:
                    raise McpServerError(explain_type(response.status_code, other))
        return await self._resumed(cursor, method, message["id"]) if answer is None else answer

    async def _post(self, message: dict[str, Any]) -> None:
        """Send a message that has no answer."""
        async with self._posting(message, self._headers("", {})) as response:
            with suppress(McpServerError):  # only the status of the response matters
                await read_bounded(response, MAX_LINE_BYTES)

    @asynccontextmanager
    async def _posting(self, message: dict[str, Any], headers: dict[str, str]) -> AsyncGenerator[httpx2.Response]:
        body = msgspec.json.encode(message)
        for _ in range(MAX_REDIRECTS):
            async with self._client.stream("POST", self._url, content=body, headers=_ACCEPT | headers) as response:
                if self._follow(response):
                    continue
                await self._check(str(message.get("method", "")), response)
                yield response
                return
        raise McpServerError("the server redirects repeatedly; use the final address")

    def _follow(self, response: httpx2.Response) -> bool:
        """Use the address of a redirect that keeps the method and the origin. Return whether there is one."""
        location = response.headers.get("location")
        if response.status_code not in _KEEPING_METHOD or location is None:
            return False
        try:
            target = urljoin(self._url, location)
            if not same_origin(target, self._url):
                return False
        except ValueError:
            return False
        self._url = target
        return True

    async def _check(self, method: str, response: httpx2.Response) -> None:
        if 200 <= response.status_code < 300:
            return
        if response.status_code == 404 and self.version is not None and not self._is_modern:
            self.closed.set()
            raise SessionForgottenError
        raise await refusal_of(method, response)

    def _headers(self, method: str, params: Mapping[str, Any]) -> dict[str, str]:
        if self.version is None:
            return {}
        if self._is_modern:
            return request_headers(method, params, self.version)
        headers = {"MCP-Protocol-Version": self.version}
        return {**headers, "Mcp-Session-Id": self._session} if self._session else headers

    @property
    def _is_modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    @contextmanager
    def _translated(self) -> Generator[None]:
        """Translate httpx2 errors. Close the channel if the server cannot be reached."""
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            self.closed.set()
            raise ConnectionClosedError(explain_http(error) or "") from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise McpServerError(explain_http(error) or "the connection failed") from None

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    async def _read_events(
        self, response: httpx2.Response, cursor: _Cursor, method: str, request_id: int | None
    ) -> dict[str, Any] | None:
        """Handle the messages of a stream. Return the result that it ends with, or None."""
        try:
            async for event in httpx2.EventSource(response, max_event_size=MAX_LINE_BYTES):
                cursor.note(event)
                if not event.data:
                    continue
                message = _decode(method, event.data.encode())
                if "method" in message:
                    await self._receive(message)
                elif request_id is not None:
                    return _result(method, message, request_id)
                else:
                    self._keep_answer(message)
        except httpx2.SSEError:
            raise McpServerError(f"an event of its stream is longer than the limit of {MAX_LINE_BYTES} bytes") from None
        except httpx2.HTTPError:
            if not cursor.event_id or self._is_modern:
                raise
        return None

    async def _resumed(self, cursor: _Cursor, method: str, request_id: int) -> dict[str, Any]:
        """Return the answer to a request whose stream broke.

        The answer may arrive in the resumed stream or in the stream of the server's own messages.
        """
        stray = self._stray_answers.setdefault(request_id, asyncio.get_running_loop().create_future())
        while not stray.done():
            resumption = asyncio.create_task(self._resume(cursor, method, request_id))
            try:
                await asyncio.wait([resumption, stray], return_when=asyncio.FIRST_COMPLETED)
                if resumption.done() and (answer := resumption.result()) is not None:
                    return answer
            finally:
                resumption.cancel()
                await asyncio.gather(resumption, return_exceptions=True)
        return _result(method, stray.result(), request_id)

    async def _resume(self, cursor: _Cursor, method: str, request_id: int | None) -> dict[str, Any] | None:
        """Resume a stream after its last event. Raises McpServerError if that is not possible."""
        if not cursor.event_id or self._is_modern or cursor.failures >= MAX_RESUMPTIONS:
            raise McpServerError("its stream of events ended without an answer")
        cursor.failures += 1
        await asyncio.sleep(cursor.retry_s)
        return await self._read_stream(cursor, method, request_id)

    async def _read_stream(
        self, cursor: _Cursor, method: str, request_id: int | None, opened: asyncio.Event | None = None
    ) -> dict[str, Any] | None:
        headers = {**self._headers("", {}), "Accept": "text/event-stream"}
        if cursor.event_id:
            headers["Last-Event-ID"] = cursor.event_id
        async with self._client.stream("GET", self._url, headers=headers) as response:
            if response.status_code != 200 or _media_type(response) != "text/event-stream":
                raise HttpStatusError(response.status_code, "the server does not resume its stream")
            if opened is not None:
                opened.set()
            return await self._read_events(response, cursor, method, request_id)

    async def _listen(self, opened: asyncio.Event) -> None:
        """Read the server's own messages while it offers a stream for them. Set `opened` once that is known.

        Servers and proxies end idle streams, so a stream that ends is opened again. The pause grows while streams end
        without any event.
        """
        cursor = _Cursor()
        while True:
            try:
                with unlogged():
                    await self._read_stream(cursor, "a message from the server", None, opened)
            except HttpStatusError as refusal:
                if refusal.status < 500:
                    return  # many servers have no such stream
            except (DragomanError, httpx2.HTTPError) as problem:
                _log.debug("the stream of an MCP server broke: %s", type(problem).__name__)
            finally:
                opened.set()
            await asyncio.sleep(min(cursor.retry_s * 2**cursor.failures, MAX_RETRY_S))
            cursor.failures = min(cursor.failures + 1, MAX_DOUBLINGS)

    def _keep_answer(self, message: dict[str, Any]) -> None:
        """Keep an answer from the server's own stream, for a request whose stream breaks or has broken."""
        request_id = message.get("id")
        if not isinstance(request_id, int) or request_id not in self._unanswered:
            return
        stray = self._stray_answers.setdefault(request_id, asyncio.get_running_loop().create_future())
        if not stray.done():
            stray.set_result(message)

    async def _receive(self, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params")
        if not isinstance(method, str) or not isinstance(params, dict | None):
            _log.warning("an invalid message of an MCP server was ignored")
            return
        fields: dict[str, Any] = cast("dict[str, Any]", params) if params else {}
        if "id" in message:
            if not self._is_modern:  # servers send no requests in the modern era
                self._begin_answer(message["id"], method, fields)
        elif method == CANCELLED:
            task = self._answering.get(fields.get("requestId"))
            if task is not None:
                task.cancel()
        else:
            await self._inbound.receive(method, fields)

    def _begin_answer(self, request_id: Any, method: str, params: dict[str, Any]) -> None:
        if not isinstance(request_id, str | int):
            return
        task = self._tasks.start(self._answer(request_id, method, params))
        self._answering[request_id] = task
        task.add_done_callback(lambda _: self._answering.pop(request_id, None))

    async def _answer(self, request_id: str | int, method: str, params: dict[str, Any]) -> None:
        try:
            answer: dict[str, Any] = {"result": await self._inbound.answer(method, params)}
        except RpcError as error:
            answer = {"error": error_object(error)}
        with suppress(DragomanError, httpx2.HTTPError), unlogged():
            await self._post({"jsonrpc": "2.0", "id": request_id, **answer})

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    async def _cancel_request(self, request_id: int) -> None:
        cancel = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": request_id}}
        with suppress(DragomanError, httpx2.HTTPError, TimeoutError), unlogged():
            async with asyncio.timeout(GOODBYE_TIMEOUT_S):
                await self._post(cancel)

    async def end_session(self) -> None:
        """End a session at a legacy server, in bounded time."""
        if self._session is None or self.closed.is_set():
            return
        with suppress(httpx2.HTTPError, TimeoutError), unlogged():
            async with asyncio.timeout(GOODBYE_TIMEOUT_S):
                await self._client.request("DELETE", self._url, headers=self._headers("", {}))


class _BackgroundTasks:
    """Background tasks that are cancelled together."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


@asynccontextmanager
async def open_http(
    definition: HttpServer,
    inbound: InboundHandler,
    authoriser: Authoriser | None = None,
    on_token: Callable[[str], None] | None = None,
) -> AsyncGenerator[HttpChannel]:
    """Open a channel to a server at a URL. Raises McpServerError."""
    headers = check_headers(definition.headers)
    tasks = _BackgroundTasks()
    auth = ServerAuthorisation(definition, authoriser, on_token)
    with unlogged():
        hooks = {"response": [bound_body]}
        async with httpx2.AsyncClient(headers=headers, timeout=TIMEOUT, auth=auth, event_hooks=hooks) as client:
            channel = HttpChannel(definition.url, client, inbound, tasks)
            try:
                yield channel
            finally:
                await tasks.close()
                await channel.end_session()
                channel.closed.set()


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


def _decode(method: str, body: bytes) -> dict[str, Any]:
    try:
        message: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InvalidResultError(method, "it is not JSON in UTF-8") from None
    if isinstance(message, list):
        raise InvalidResultError(method, "expected one message, got a batch")
    if not isinstance(message, dict):
        raise InvalidResultError(method, "expected an object")
    return cast("dict[str, Any]", message)


def _read_answer(method: str, body: bytes, request_id: int) -> dict[str, Any]:
    if not body.strip():
        raise McpServerError(f"the server answered {method} with an empty body; expected JSON or an event stream")
    return _result(method, _decode(method, body), request_id)


def _result(method: str, message: dict[str, Any], request_id: int) -> dict[str, Any]:
    """Return the result of a response. Raises RemoteError and InvalidResultError."""
    error = message.get("error")
    if isinstance(error, dict):
        fields = cast("dict[str, Any]", error)
        code = fields.get("code")
        raise RemoteError(
            method, code if isinstance(code, int) else 0, str(fields.get("message", "")), fields.get("data")
        )
    if message.get("id") != request_id or isinstance(message.get("id"), bool):
        raise InvalidResultError(method, f"its id is {message.get('id')!r:.60}, expected {request_id}")
    result = message.get("result")
    if not isinstance(result, dict):
        raise InvalidResultError(method, "expected an object")
    return cast("dict[str, Any]", result)
