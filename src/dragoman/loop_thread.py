"""An event loop in a thread of its own, for callers that are not asynchronous or must not keep it waiting."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines and contexts for other threads, until it is stopped."""

    def __init__(self, name: str = "dragoman") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there and wait for it; an interrupted wait cancels the work."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def enter(self, manager: AbstractAsyncContextManager[T]) -> tuple[T, Callable[[], None]]:
        """Enter a context there, and return the function that leaves it; both in one task, as contexts expect."""
        left = asyncio.Event()
        opened: Future[T] = Future()
        ended: Future[None] = Future()

        async def stay() -> None:
            try:
                async with manager as value:
                    opened.set_result(value)
                    await left.wait()
            except BaseException as error:  # noqa: BLE001 -- boundary: task top; it is raised where it is waited for
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
        """Call a function there, unless the loop has ended."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work)

    def stop(self) -> None:
        """End the loop: tasks that still run there are cancelled."""
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
