"""Work that leaves the event loop to others, and that is done to its end once it was asked for."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


async def finish(work: Callable[[], _Result], *, undo: Callable[[_Result], None] | None = None) -> _Result:
    """Work in a thread; when the caller goes away meanwhile the work goes on, and is then undone if it can be.

    Cancelling `asyncio.to_thread` would take back work that had no thread yet, and what it was to close stayed open.
    """
    working = asyncio.create_task(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        working.add_done_callback(lambda done: _settle(done, undo))
        raise


def _settle(done: asyncio.Task[_Result], undo: Callable[[_Result], None] | None) -> None:
    if not done.cancelled() and done.exception() is None and undo is not None:
        undo(done.result())
