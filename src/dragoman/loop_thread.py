"""An event loop in a separate thread, for synchronous callers and for callers that must not block it."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines and contexts for other threads until it is stopped."""

    def __init__(self, name: str = "dragoman") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop and wait for it. An interrupted wait cancels the coroutine."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def enter(self, manager: AbstractAsyncContextManager[T]) -> tuple[T, Callable[[], None]]:
        """Enter a context in the loop. Return its value and the function that exits it, in the same task."""
        left = asyncio.Event()
        opened: Future[T] = Future()
        ended: Future[None] = Future()

        async def stay() -> None:
            try:
                async with manager as value:
                    opened.set_result(value)
                    await left.wait()
            except BaseException as error:  # noqa: BLE001 -- task boundary: the waiter receives the error
                (ended if opened.done() else opened).set_exception(error)
            if not ended.done():
                ended.set_result(None)

        staying = asyncio.run_coroutine_threadsafe(stay(), self._loop)

        def leave() -> None:
            self.soon(left.set)
            ended.result()

        try:
            return opened.result(), leave
        except BaseException:
            staying.cancel()
            wait([ended])
            raise

    def soon(self, work: Callable[[], object]) -> None:
        """Call a function in the loop, unless the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """Stop the loop and cancel the tasks that still run in it."""
        self.soon(self._loop.stop)
        self._thread.join()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(_cancel_others())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()


async def _cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
