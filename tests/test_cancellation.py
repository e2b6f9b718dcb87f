"""Work that must not stop half-way is done to its end, however often its caller is cancelled."""

import asyncio
import threading

import pytest

from dragoman.cancellation import finish, finish_in_thread


class Work:
    """Begins, and ends when it is told to."""

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


async def test_the_result_is_returned_and_an_error_raised():
    work = Work()
    work.may_end.set()
    assert await finish(work.run()) == "result"
    failing = Work(ValueError("no"))
    failing.may_end.set()
    with pytest.raises(ValueError, match="no"):
        await finish(failing.run())


@pytest.mark.parametrize("error", [None, ValueError("no")])
async def test_a_cancelled_caller_waits_for_the_end_and_is_cancelled_then(error):
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


async def test_after_the_limit_a_cancelled_caller_waits_no_longer_and_the_work_goes_on():
    work = Work(ValueError("seen by nobody, and no complaint of asyncio"))
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


async def test_work_that_is_cancelled_itself_cancels_its_caller():
    task = asyncio.create_task(asyncio.Event().wait())
    caller = asyncio.create_task(finish(task))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_work_in_a_thread_is_undone_when_its_caller_was_cancelled_meanwhile():
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


async def test_work_in_a_thread_is_not_undone_when_its_caller_gets_the_result():
    undone = []
    assert await finish_in_thread(lambda: "made", undo=undone.append) == "made"
    assert undone == []
