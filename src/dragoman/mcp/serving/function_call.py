"""Calling a function as a tool: the thread it runs in, the progress it reports, and its result in MCP.

A thread cannot be stopped. The threads of asyncio's pool are few, and the program cannot exit before they finish. Our
threads are daemons and end with the program.
"""

import asyncio
import base64
import contextvars
import threading
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec

from dragoman.errors import ConnectionClosedError, DragomanError

MAX_THREADS = 32
"""Maximum number of functions that run at a time. Others wait. A function that never returns keeps its thread."""


class ThreadResult(msgspec.Struct, frozen=True):
    """The value that a function returned, or its exception."""

    value: Any = None
    error: BaseException | None = None


class FunctionThreads:
    """Runs functions in threads, a bounded number at a time."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._free = asyncio.Semaphore(max_threads)

    async def run(self, function: Callable[[], Any]) -> ThreadResult:
        """Run a function. If the wait is cancelled, the function continues and its result is dropped."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ThreadResult] = loop.create_future()
        context = contextvars.copy_context()

        def settle(outcome: ThreadResult) -> None:
            self._free.release()
            if not future.done():
                future.set_result(outcome)

        def work() -> None:
            try:
                outcome = ThreadResult(context.run(function))
            except BaseException as error:  # noqa: BLE001 -- boundary: user callback, and the top of its thread
                outcome = ThreadResult(error=error)
            with suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(settle, outcome)

        threading.Thread(target=work, name="dragoman-function", daemon=True).start()
        return await future


SendNotification = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to the caller."""

PROGRESS = "notifications/progress"

MAX_UNSENT = 100
"""Maximum number of unsent reports. Further reports replace the oldest."""


class Progress:
    """Reports progress. A function with a parameter of this type can call it from any thread."""

    def __init__(self, token: str | int | None) -> None:
        self._token = token
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[dict[str, Any]] = deque(maxlen=MAX_UNSENT)
        self._has_reports = asyncio.Event()
        self._is_over = False

    def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report that `progress` of `total` is done. Does nothing if the caller did not ask for progress."""
        if self._token is None or self._is_over:
            return
        report = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        self._unsent.append({key: value for key, value in report.items() if value is not None})
        with suppress(RuntimeError):  # the program has ended, but one of its threads has not
            self._loop.call_soon_threadsafe(self._has_reports.set)

    @asynccontextmanager
    async def sending_reports(self, notify: SendNotification) -> AsyncGenerator[None]:
        """Send the reports while the function runs. All are sent when the block ends without an exception."""
        sender = asyncio.create_task(self._send(notify))
        try:
            yield
            self._is_over = True
            self._has_reports.set()
            await sender
        finally:
            self._is_over = True
            sender.cancel()

    async def _send(self, notify: SendNotification) -> None:
        with suppress(ConnectionClosedError):
            while self._unsent or not self._is_over:
                await self._has_reports.wait()
                self._has_reports.clear()
                while self._unsent:
                    await notify(PROGRESS, self._unsent.popleft())


McpResult = dict[str, Any]


class Image(msgspec.Struct, frozen=True):
    """An image that a function returns: its bytes and MIME type."""

    data: bytes
    mime: str = "image/png"


class UnsendableResultError(DragomanError):
    """A function returned a value that cannot be sent."""


def as_result(value: Any) -> McpResult:
    """Return the result of a call. Raises UnsendableResultError for a value that cannot be sent."""
    match value:
        case None:
            return {"content": []}
        case str() | Image():
            return {"content": [_block(value)]}
        case list() | tuple() if any(isinstance(each, Image) for each in cast("Sequence[Any]", value)):
            return {"content": [_block(each) for each in cast("Sequence[Any]", value)]}
        case _:
            return _structured(_plain(value))


def as_failure(error: BaseException) -> McpResult:
    """Return the result of a call that raised an exception, without its traceback."""
    text = str(error)
    name = type(error).__name__
    return failure(f"{name}: {text}" if text else name)


def failure(text: str) -> McpResult:
    """Return the result of a failed call, with this message."""
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _structured(value: Any) -> McpResult:
    result: McpResult = {"content": [_block(value)]}
    if isinstance(value, dict):
        result["structuredContent"] = value
    elif isinstance(value, list | tuple):
        # Structured content must be an object, so a list is wrapped in one.
        result["structuredContent"] = {"result": list(cast("Sequence[Any]", value))}
    return result


def _block(value: Any) -> dict[str, Any]:
    if isinstance(value, Image):
        return {"type": "image", "data": base64.b64encode(value.data).decode(), "mimeType": value.mime}
    text = value if isinstance(value, str) else msgspec.json.encode(_plain(value)).decode()
    return {"type": "text", "text": text}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raise UnsendableResultError("the function returned bytes of an unknown type; return Image(data, mime) or text")
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise UnsendableResultError(
            f"the function returned a value that cannot be converted to JSON: {error}"
        ) from None
