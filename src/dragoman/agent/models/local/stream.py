"""Items that a thread makes and a task reads, with a bound on how far the thread may be ahead."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

MAX_AHEAD = 64
"""Items between thread and task: a few seconds of a small model, so that neither often waits for the other."""

Give = Callable[[T], bool]
"""Hands an item on, and returns True when no more are wanted."""


class _End:
    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class ThreadStream(Generic[T]):
    """What `produce` gives, in a daemon thread that runs until it returns; `stop` makes its next `give` say so."""

    def __init__(self, produce: Callable[[Give[T]], None], name: str) -> None:
        self._produce = produce
        self._loop = asyncio.get_running_loop()
        self._items: asyncio.Queue[T | _End] = asyncio.Queue(MAX_AHEAD + 1)
        self._room = threading.Semaphore(MAX_AHEAD)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to end; from any thread."""
        self._stopped.set()
        self._room.release()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread, and return whether it has ended."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    async def items(self) -> AsyncGenerator[T]:
        """Yield what comes, and raise what `produce` raised; to leave early is to stop."""
        try:
            while not isinstance(item := await self._items.get(), _End):
                self._room.release()
                yield item
            if item.error is not None:
                raise item.error
        finally:
            self.stop()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._produce(self._give)
        except BaseException as problem:  # noqa: BLE001 -- a task top: the error belongs to whoever reads
            error = problem
        self._put(_End(error))

    def _give(self, item: T) -> bool:
        self._room.acquire()
        if self._stopped.is_set():
            self._room.release()
            return True
        return not self._put(item) or self._stopped.is_set()

    def _put(self, item: T | _End) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._items.put_nowait, item)
        except RuntimeError:  # the loop is closed: nobody reads any more
            return False
        return True
