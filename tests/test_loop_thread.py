"""An event loop in a thread runs coroutines and contexts for other threads, and leaves nothing running."""

import asyncio
import threading
from contextlib import asynccontextmanager

import pytest

from dragoman.loop_thread import LoopThread


@pytest.fixture
def thread():
    thread = LoopThread("test")
    yield thread
    thread.stop()


def test_coroutine_runs_in_the_thread_and_returns_or_raises(thread):
    async def name():
        return threading.current_thread().name

    async def fail():
        raise ValueError("no")

    assert thread.run(name()) == "test"
    with pytest.raises(ValueError, match="no"):
        thread.run(fail())


def test_context_is_entered_and_exited_in_one_task(thread):
    tasks = []

    @asynccontextmanager
    async def context():
        tasks.append(asyncio.current_task())
        yield "value"
        tasks.append(asyncio.current_task())

    value, leave = thread.enter(context())
    leave()
    assert (value, len(tasks), len(set(tasks))) == ("value", 2, 1)


def test_enter_and_exit_errors_reach_the_caller(thread):
    @asynccontextmanager
    async def context(where):
        if where == "entering":
            raise ValueError(where)
        yield
        raise ValueError(where)

    with pytest.raises(ValueError, match="entering"):
        thread.enter(context("entering"))
    _, leave = thread.enter(context("leaving"))
    with pytest.raises(ValueError, match="leaving"):
        leave()


def test_stopping_cancels_running_tasks_and_ignores_later_calls():
    thread, cancelled = LoopThread(), []

    async def begin():
        async def wait():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.append(True)
                raise

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        return task

    task = thread.run(begin())
    thread.stop()
    assert cancelled == [True]
    assert task.cancelled()
    thread.soon(lambda: cancelled.append("never"))
    assert cancelled == [True]
