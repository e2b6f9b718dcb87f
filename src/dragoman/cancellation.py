"""Work that must not stop half-way when the task that waits for it is cancelled.

`finish` makes the cancelled task wait until the work is done, so that nothing happens after it. `finish_in_thread` lets
the cancelled task go at once; the work is done all the same, and then undone where that is possible.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Awaitable[T], *, limit_s: float | None = None) -> T:
    """Await work to its end; a cancellation that comes meanwhile is raised only then, in place of a result or an error.

    `limit_s` bounds the wait after a cancellation; work that takes longer goes on by itself.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _wait(task, limit_s)
        raise


async def finish_in_thread(work: Callable[[], T], *, undo: Callable[[T], None] | None = None) -> T:
    """Work in a thread; when the caller is cancelled meanwhile the work goes on, and is then undone if it can be.

    Cancelling `asyncio.to_thread` itself would drop work that has no thread yet, and leave open what it was to close.
    """
    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _settle(done, undo))
        raise


async def _wait(task: asyncio.Future[Any], limit_s: float | None) -> None:
    task.add_done_callback(lambda done: _settle(done, None))
    loop = asyncio.get_running_loop()
    end = None if limit_s is None else loop.time() + limit_s
    while not task.done() and (end is None or loop.time() < end):
        try:
            await asyncio.wait([task], timeout=None if end is None else end - loop.time())
        except asyncio.CancelledError:
            continue  # the first one is raised in the end


def _settle(done: asyncio.Future[T], undo: Callable[[T], None] | None) -> None:
    # Asking for the exception tells asyncio that it was seen.
    if not done.cancelled() and done.exception() is None and undo is not None:
        undo(done.result())
