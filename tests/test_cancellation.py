"""Work that must not stop half-way is completed, however often its caller is cancelled."""

import asyncio
import threading

import pytest

from dragoman.cancellation import finish, finish_in_thread


class Work:
    """Work that starts, and ends on request."""

    def __init__(self, error=None):
        self.begun, self.may_end, self.done = asyncio.Event(), asyncio.Event(), False
        self._error = error

    async def run(self):
        self.begun.set()
        await self.may_end.wait()
        self.done = True
        if self._error is not None:
            raise self._error
        return "result"


async def test_result_is_returned_and_error_is_raised():
    work = Work()
    work.may_end.set()
    assert await finish(work.run()) == "result"
    failing = Work(ValueError("no"))
    failing.may_end.set()
    with pytest.raises(ValueError, match="no"):
        await finish(failing.run())


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_cancelled_caller_waits_for_the_end_of_the_work(error):
    work = Work(error)
    caller = asyncio.create_task(finish(work.run()))
    await work.begun.wait()
    for _ in range(3):
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
    work.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert work.done


async def test_cancelled_caller_stops_waiting_after_the_limit():
    work = Work(ValueError("never retrieved, and asyncio does not complain"))
    task = asyncio.create_task(work.run())
    caller = asyncio.create_task(finish(task, limit_s=0.001))
    await work.begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert not work.done
    work.may_end.set()
    await asyncio.wait([task])
    assert work.done


async def test_cancelled_work_cancels_its_caller():
    task = asyncio.create_task(asyncio.Event().wait())
    caller = asyncio.create_task(finish(task))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_thread_work_is_undone_if_its_caller_was_cancelled():
    loop, begun, may_end, undone = asyncio.get_running_loop(), asyncio.Event(), threading.Event(), asyncio.Queue()

    def work():
        loop.call_soon_threadsafe(begun.set)
        may_end.wait()
        return "made"

    caller = asyncio.create_task(finish_in_thread(work, undo=undone.put_nowait))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    may_end.set()
    assert await undone.get() == "made"


async def test_thread_work_is_kept_if_its_caller_receives_the_result():
    undone = []
    assert await finish_in_thread(lambda: "made", undo=undone.append) == "made"
    assert undone == []
