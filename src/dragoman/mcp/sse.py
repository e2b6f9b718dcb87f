"""Lines over an event stream and posts: the older of MCP's two HTTP transports.

The SDK has one as well, but it gives up a connection at an event of more than 1 MiB.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urljoin

import httpx2

from dragoman.errors import ConnectionClosed
from dragoman.library_logs import unlogged
from dragoman.mcp.http_errors import check_headers, explain_http, explain_status, explain_type, same_origin
from dragoman.wire import MAX_LINE_BYTES, Receiver
from dragoman.wire.transport import LineQueue

READ_TIMEOUT_S = 3600.0
"""An event stream may be silent while there is no call."""

CONNECT_TIMEOUT_S = 30.0

PROBE_TIMEOUT_S = 5.0
"""The address for posts is the first event of a stream, and comes at once."""

MAX_SKIPPED_BYTES = 64 * 1024
"""Bytes read of the answer to a post, of which only the status matters."""


class SseTransport:
    """Carries each message as one event, or one post."""

    can_write = True

    def __init__(self, url: str, headers: Iterable[tuple[str, str]]) -> None:
        timeout = httpx2.Timeout(CONNECT_TIMEOUT_S, read=READ_TIMEOUT_S)
        self._url = url
        self._client = httpx2.AsyncClient(headers=check_headers(headers), timeout=timeout)
        self._endpoint: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._queue = LineQueue()
        self._reading = asyncio.Event()
        self._reading.set()
        self._tasks: list[asyncio.Task[None]] = []
        self._end = ConnectionClosed("the server closed its event stream")

    @property
    def unsent_bytes(self) -> int:
        return self._queue.unsent_bytes

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._tasks = [tasks.create_task(self._read(receiver)), tasks.create_task(self._post())]

    def write(self, lines: bytes | bytearray) -> None:
        if self.can_write:
            self._queue.put(lines)

    async def drained(self) -> None:
        await self._queue.drained()

    def pause_reading(self) -> None:
        self._reading.clear()

    def resume_reading(self) -> None:
        self._reading.set()

    async def explain_end(self) -> ConnectionClosed:
        return self._end

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if not self._endpoint.done():
            self._endpoint.cancel()
        self._queue.close()
        await self._client.aclose()

    async def _read(self, receiver: Receiver) -> None:
        accept = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        try:
            with unlogged():
                async with self._client.stream("GET", self._url, headers=accept) as response:
                    _check(response)
                    _check_events(response)
                    async for event in httpx2.EventSource(response, max_event_size=MAX_LINE_BYTES):
                        if event.event == "endpoint":
                            self._take_endpoint(event.data)
                        elif event.data:
                            await self._reading.wait()
                            receiver.lines_received([event.data.encode()])
        except (httpx2.HTTPError, httpx2.InvalidURL, ConnectionClosed) as error:
            self._fail(error)
        finally:
            receiver.input_ended(was_file=False)

    async def _post(self) -> None:
        try:
            endpoint = await self._endpoint
            await self._queue.send_all(lambda line: self._send(line, endpoint))
        except (httpx2.HTTPError, httpx2.InvalidURL, ConnectionClosed) as error:
            self._fail(error)
            self._tasks[0].cancel()

    async def _send(self, line: bytes, endpoint: str) -> None:
        json = {"Content-Type": "application/json"}
        with unlogged():
            async with self._client.stream("POST", endpoint, content=line, headers=json) as response:
                _check(response)
                await _skip(response)

    def _take_endpoint(self, data: str) -> None:
        """Take the address to post to; headers and messages go to the server's own origin only."""
        try:
            endpoint = urljoin(self._url, data)
            is_own = same_origin(endpoint, self._url)
        except ValueError:
            raise ConnectionClosed("the server wants its messages posted to what is no address") from None
        if not is_own:
            raise ConnectionClosed("the server wants its messages posted to another origin, which is refused")
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    def _fail(self, error: Exception) -> None:
        self.can_write = False
        self._queue.close()
        words = str(error) if isinstance(error, ConnectionClosed) else explain_http(error)
        self._end = ConnectionClosed(words or "the connection failed")


async def serves_sse(url: str, headers: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a server of this transport is at an address: its stream begins with the address for posts."""
    accept = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    try:
        with unlogged():
            async with (
                asyncio.timeout(PROBE_TIMEOUT_S),
                httpx2.AsyncClient(headers=check_headers(headers)) as client,
                client.stream("GET", url, headers=accept) as response,
            ):
                if response.status_code != 200 or "text/event-stream" not in response.headers.get("content-type", ""):
                    return False
                async for event in httpx2.EventSource(response, max_event_size=MAX_SKIPPED_BYTES):
                    return event.event == "endpoint"
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError):
        pass
    return False


async def _skip(response: httpx2.Response) -> None:
    """Read the rest, so that the connection can be used again, up to a limit."""
    count = 0
    async for piece in response.aiter_raw():
        count += len(piece)
        if count > MAX_SKIPPED_BYTES:
            return


def _check_events(response: httpx2.Response) -> None:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "text/event-stream":
        raise ConnectionClosed(explain_type(response.status_code, media_type))


def _check(response: Any) -> None:
    status = cast("int", response.status_code)
    if not 200 <= status < 300:
        raise ConnectionClosed(explain_status(status))
