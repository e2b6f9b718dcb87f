"""The older of MCP's two HTTP transports: lines over an event stream and POSTs.

The SDK has this transport as well, but closes the connection at an event of more than 1 MiB.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast
from urllib.parse import urljoin

import httpx2

from dragoman.errors import ConnectionClosedError
from dragoman.library_logs import unlogged
from dragoman.mcp.http_errors import check_headers, explain_http, explain_status, explain_type, same_origin
from dragoman.wire import MAX_LINE_BYTES, Receiver
from dragoman.wire.transport import LineQueue

READ_TIMEOUT_S = 3600.0
"""An event stream may be silent between calls."""

CONNECT_TIMEOUT_S = 30.0

PROBE_TIMEOUT_S = 5.0
"""The endpoint for POSTs is the first event of a stream, and arrives immediately."""

MAX_SKIPPED_BYTES = 64 * 1024
"""Maximum number of bytes read from the response to a POST. Only the status matters."""


class SseTransport:
    """Sends each message as one POST, and receives each as one event."""

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
        self._end = ConnectionClosedError("the server closed its event stream")

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

    async def explain_end(self) -> ConnectionClosedError:
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
                            self._set_endpoint(event.data)
                        elif event.data:
                            await self._reading.wait()
                            receiver.lines_received([event.data.encode()])
        except (httpx2.HTTPError, httpx2.InvalidURL, ConnectionClosedError) as error:
            self._fail(error)
        finally:
            receiver.input_ended(was_file=False)

    async def _post(self) -> None:
        try:
            endpoint = await self._endpoint
            await self._queue.send_all(lambda line: self._send(line, endpoint))
        except (httpx2.HTTPError, httpx2.InvalidURL, ConnectionClosedError) as error:
            self._fail(error)
            self._tasks[0].cancel()

    async def _send(self, line: bytes, endpoint: str) -> None:
        json = {"Content-Type": "application/json"}
        with unlogged():
            async with self._client.stream("POST", endpoint, content=line, headers=json) as response:
                _check(response)
                await _skip(response)

    def _set_endpoint(self, data: str) -> None:
        """Set the endpoint to post to. Headers and messages are only sent to the server's own origin."""
        try:
            endpoint = urljoin(self._url, data)
            is_own = same_origin(endpoint, self._url)
        except ValueError:
            raise ConnectionClosedError("the server names a message address that is not valid") from None
        if not is_own:
            raise ConnectionClosedError("the server names a message address at another origin, which is not allowed")
        if not self._endpoint.done():
            self._endpoint.set_result(endpoint)

    def _fail(self, error: Exception) -> None:
        self.can_write = False
        self._queue.close()
        reason = str(error) if isinstance(error, ConnectionClosedError) else explain_http(error)
        self._end = ConnectionClosedError(reason or "the connection failed")


async def serves_sse(url: str, headers: Iterable[tuple[str, str]]) -> bool:
    """Return whether a server of this transport is at a URL. Its stream starts with the endpoint for POSTs."""
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
    """Read the rest up to a limit, so that the connection can be reused."""
    count = 0
    async for piece in response.aiter_raw():
        count += len(piece)
        if count > MAX_SKIPPED_BYTES:
            return


def _check_events(response: httpx2.Response) -> None:
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "text/event-stream":
        raise ConnectionClosedError(explain_type(response.status_code, media_type))


def _check(response: Any) -> None:
    status = cast("int", response.status_code)
    if not 200 <= status < 300:
        raise ConnectionClosedError(explain_status(status))
