"""Work that must not stop half-way when the task that waits for it is cancelled.

`finish` makes the cancelled task wait until the work is done, so that nothing happens afterwards. `finish_in_thread`
lets the cancelled task end at once. Its work still completes, and is then undone if possible.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def finish(work: Awaitable[T], *, limit_s: float | None = None) -> T:
    """Await work to its end. A cancellation during the wait is raised only after that, instead of result or error.

    `limit_s` bounds the wait after a cancellation. Work that takes longer continues in the background.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await _wait(task, limit_s)
        raise


async def finish_in_thread(work: Callable[[], T], *, undo: Callable[[T], None] | None = None) -> T:
    """Run work in a thread. If the caller is cancelled, the work still completes, and `undo` receives its result.

    Cancelling `asyncio.to_thread` itself could drop work that has not started, and leave open what it should close.
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
            continue  # the first cancellation is raised at the end


def _settle(done: asyncio.Future[T], undo: Callable[[T], None] | None) -> None:
    # Retrieving the exception marks it as handled for asyncio.
    if not done.cancelled() and done.exception() is None and undo is not None:
        undo(done.result())
