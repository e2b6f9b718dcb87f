"""Tasks of one agent's bridge, and a way to start them without losing the order of messages.

Messages must reach the agent in the order in which they came. A cancel that follows a prompt must follow it at the
agent as well. A task that asyncio creates runs its first step one tick later, when other messages may have been handled
already. So `BackgroundTasks.start` runs the first step at once. A request for an open session is written to the agent
before `start` returns.

Python 3.12 has eager tasks for this, but Python 3.11 does not. Here the first step runs as a part of the task, with the
functions that asyncio documents for extending it. So `asyncio.timeout` and `asyncio.current_task` work in it.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # pyright: ignore[reportPrivateUsage] -- documented for this use
from collections.abc import Coroutine, Generator
from typing import Any

Work = Coroutine[Any, Any, None]


class BackgroundTasks:
    """The tasks of one agent. An error in one is reported and does not stop the others."""

    def __init__(self, agent: str, group: asyncio.TaskGroup) -> None:
        self.group = group
        self._agent = agent
        self._running: set[asyncio.Task[None]] = set()

    def spawn(self, work: Work) -> asyncio.Task[None]:
        """Run a coroutine as a task that starts in the next tick."""
        task = self._create(self._guard(work))
        task.add_done_callback(lambda _: work.close())  # avoids a warning if the task was cancelled before it began
        return task

    def start(self, work: Work) -> None:
        """Run a coroutine as a task, with its first step now."""
        begun = _BegunWork(self._guard(work))
        task = self._create(begun.finish())
        loop, current = asyncio.get_running_loop(), asyncio.current_task()
        if current is not None:
            _leave_task(loop, current)
        _enter_task(loop, task)
        try:
            begun.begin()
        finally:
            _leave_task(loop, task)
            if current is not None:
                _enter_task(loop, current)

    def cancel(self) -> None:
        """Cancel all tasks."""
        for task in list(self._running):
            task.cancel()

    def _create(self, work: Work) -> asyncio.Task[None]:
        task = self.group.create_task(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def _guard(self, work: Work) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001 -- the top of a task, whose error must not affect other viewers
            context = {"message": f"the bridge for {self._agent} failed", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


class Waiters(list["asyncio.Future[None]"]):
    """Tasks that wait for one event, in order. They are released or refused together."""

    def add(self) -> "asyncio.Future[None]":
        """Return a future to await."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.append(future)
        return future

    def pop_all(self) -> "Waiters":
        """Remove all waiters, and return them as another list."""
        popped = Waiters(self)
        self.clear()
        return popped

    def release(self) -> None:
        """Continue all tasks."""
        for future in self.pop_all():
            if not future.done():
                future.set_result(None)

    def refuse(self, error: Exception) -> None:
        """Raise an error in all tasks."""
        for future in self.pop_all():
            if not future.done():
                future.set_exception(error)
                future.exception()  # marks the error as retrieved, because the task may be cancelled before it runs


class _BegunWork:
    """A coroutine whose first step runs separately from the others."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._is_done = False
        self._waited: object = None

    def begin(self) -> None:
        """Run the first step."""
        try:
            self._waited = self._work.send(None)
        except StopIteration:
            self._is_done = True

    async def finish(self) -> None:
        """Run the other steps."""
        if not self._is_done:
            await self

    def __await__(self) -> Generator[Any, None, None]:
        """Yield each future that the coroutine awaits to the task, and send the outcome back to the coroutine."""
        waited = self._waited
        try:
            while True:
                try:
                    yield waited
                except BaseException as error:  # noqa: BLE001 -- the coroutine must receive cancellations as well
                    waited = self._work.throw(error)
                else:
                    waited = self._work.send(None)
        except StopIteration:
            return
