"""Calling a function as a tool: the thread that it runs in, the progress that it reports, and its result in MCP.

A thread cannot be stopped. The threads of asyncio's pool are few, and the program cannot end before each is done; ours
are daemons, which end with the program.
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

from dragoman.errors import ConnectionClosed, DragomanError

MAX_THREADS = 32
"""Functions that run at a time; others wait. A function that never returns keeps its thread."""


class ThreadResult(msgspec.Struct, frozen=True):
    """The value that a function returned, or its exception."""

    value: Any = None
    error: BaseException | None = None


class FunctionThreads:
    """Runs functions, a bounded number at a time."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._free = asyncio.Semaphore(max_threads)

    async def run(self, function: Callable[[], Any]) -> ThreadResult:
        """Run a function; when the wait is cancelled it continues, and its result is dropped."""
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


Tell = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to the caller."""

PROGRESS = "notifications/progress"

MAX_UNSENT = 100
"""Reports that wait to be sent; when there are more, the oldest are dropped."""


class Progress:
    """The argument for a parameter of this type: call it, from any thread, to report progress."""

    def __init__(self, token: str | int | None) -> None:
        self._token = token
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[dict[str, Any]] = deque(maxlen=MAX_UNSENT)
        self._news = asyncio.Event()
        self._is_over = False

    def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report that `progress` of `total` is done; nothing happens when the caller did not ask for progress."""
        if self._token is None or self._is_over:
            return
        report = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        self._unsent.append({key: value for key, value in report.items() if value is not None})
        with suppress(RuntimeError):  # the program has ended, and a thread of it has not
            self._loop.call_soon_threadsafe(self._news.set)

    @asynccontextmanager
    async def telling(self, tell: Tell) -> AsyncGenerator[None]:
        """Send the reports while the function runs; all are sent when the block ends without an exception."""
        sender = asyncio.create_task(self._send(tell))
        try:
            yield
            self._is_over = True
            self._news.set()
            await sender
        finally:
            self._is_over = True
            sender.cancel()

    async def _send(self, tell: Tell) -> None:
        with suppress(ConnectionClosed):
            while self._unsent or not self._is_over:
                await self._news.wait()
                self._news.clear()
                while self._unsent:
                    await tell(PROGRESS, self._unsent.popleft())


McpResult = dict[str, Any]


class Image(msgspec.Struct, frozen=True):
    """A picture that a function returns: its bytes and their MIME type."""

    data: bytes
    mime: str = "image/png"


class UnsendableResult(DragomanError):
    """A function returned a value that cannot be sent."""


def as_result(value: Any) -> McpResult:
    """Return the result of a call; raises UnsendableResult for a value that cannot be sent."""
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
    """Return the result of a call that raised: the exception without its traceback."""
    words = str(error)
    name = type(error).__name__
    return failure(f"{name}: {words}" if words else name)


def failure(words: str) -> McpResult:
    """Return the result of a call that failed, with this message."""
    return {"content": [{"type": "text", "text": words}], "isError": True}


def _structured(value: Any) -> McpResult:
    result: McpResult = {"content": [_block(value)]}
    if isinstance(value, dict):
        result["structuredContent"] = value
    elif isinstance(value, list | tuple):
        # Structured content is an object; a list has to be inside of one.
        result["structuredContent"] = {"result": list(cast("Sequence[Any]", value))}
    return result


def _block(value: Any) -> dict[str, Any]:
    if isinstance(value, Image):
        return {"type": "image", "data": base64.b64encode(value.data).decode(), "mimeType": value.mime}
    text = value if isinstance(value, str) else msgspec.json.encode(_plain(value)).decode()
    return {"type": "text", "text": text}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        raise UnsendableResult("the function returned bytes of an unknown kind; return Image(data, mime) or text")
    try:
        return msgspec.to_builtins(value, str_keys=True)
    except (TypeError, ValueError, NotImplementedError, RecursionError) as error:
        raise UnsendableResult(f"the function returned a value that cannot be made JSON: {error}") from None
