"""Tasks whose first step runs at once."""

import asyncio

from dragoman.bridge.tasks import BackgroundTasks
from tests.waiting import until


async def test_first_step_runs_before_start_returns():
    done = []

    async def work():
        done.append("first")
        await asyncio.sleep(0)
        done.append("second")

    async with asyncio.TaskGroup() as group:
        BackgroundTasks("one", group).start(work())
        assert done == ["first"]
    assert done == ["first", "second"]


async def test_first_step_runs_in_its_own_task():
    seen = []

    async def work():
        seen.append(asyncio.current_task())
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            seen.append(asyncio.current_task())

    async with asyncio.TaskGroup() as group:
        BackgroundTasks("one", group).start(work())
        assert asyncio.current_task() not in seen
    assert len(seen) == 2
    assert seen[0] is seen[1]


async def test_work_receives_results_and_its_cancellation():
    ended = []

    async def fail():
        await asyncio.sleep(0)
        raise ValueError("no")

    async def work():
        try:
            await asyncio.ensure_future(fail())
        except ValueError as error:
            ended.append(str(error))
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    async with asyncio.TaskGroup() as group:
        tasks = BackgroundTasks("one", group)
        tasks.start(work())
        await until(lambda: ended)
        tasks.cancel()
    assert ended == ["no", "cancelled"]
