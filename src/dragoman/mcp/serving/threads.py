"""Plain functions in threads of their own.

A thread cannot be stopped. asyncio's own pool would keep the program from ending until each of them is done, and has
few; these are daemons, and end with the program.
"""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

MAX_THREADS = 32
"""Functions that run at a time; others wait. One that never returns has its place for good."""


class ThreadResult(msgspec.Struct, frozen=True):
    """What a function returned, or raised."""

    value: Any = None
    error: BaseException | None = None


class FunctionThreads:
    """Runs functions, a bounded number at a time."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self._free = asyncio.Semaphore(max_threads)

    async def run(self, function: Callable[[], Any]) -> ThreadResult:
        """Run a function; when the wait is cancelled it goes on, and what comes of it is dropped."""
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
