"""How far a function has come, told by itself while it runs."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dragoman.errors import ConnectionClosed

Tell = Callable[[str, dict[str, Any]], Awaitable[None]]
"""Sends a notification to whoever called."""

PROGRESS = "notifications/progress"

MAX_UNSENT = 100
"""Reports that wait to be sent; of a function that reports faster than that, the newest count."""


class Progress:
    """Given to a function for a parameter of this type: call it, from any thread, to say how far the work has come."""

    def __init__(self, token: str | int | None) -> None:
        self._token = token
        self._loop = asyncio.get_running_loop()
        self._unsent: deque[dict[str, Any]] = deque(maxlen=MAX_UNSENT)
        self._news = asyncio.Event()
        self._is_over = False

    def __call__(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report that `progress` of `total` is done; nothing happens when the caller did not ask to be told."""
        if self._token is None or self._is_over:
            return
        report = {"progressToken": self._token, "progress": progress, "total": total, "message": message}
        self._unsent.append({key: value for key, value in report.items() if value is not None})
        with suppress(RuntimeError):  # the program has ended, and a thread of it has not
            self._loop.call_soon_threadsafe(self._news.set)

    @asynccontextmanager
    async def telling(self, tell: Tell) -> AsyncGenerator[None]:
        """Send what is reported while the function runs; all of it was sent when it has ended well."""
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
