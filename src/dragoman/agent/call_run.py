"""The work of a tool call while it runs: it can be cancelled alone, and its turn goes on."""

import asyncio

from dragoman.agent.prepared_call import ToolFailure, ToolOutcome
from dragoman.telemetry.operation import Operation


class CallCancelled(ToolFailure):
    """The person cancelled one tool call; the turn goes on, and ends if its function does not handle this."""


class PreparedRun:
    """The run of a prepared call, in a task of its own."""

    def __init__(self, work: asyncio.Future[ToolOutcome]) -> None:
        self.work = work
        self.is_cancelled = False

    def cancel(self) -> bool:
        """Stop it, once; returns whether it ran."""
        if self.is_cancelled:
            return False
        self.is_cancelled = self.work.cancel()
        return self.is_cancelled


class CallBody:
    """The body of an `async with`: a part of a task that is the program's, and goes on behind it."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._task = asyncio.current_task()
        self._cancellations_before = self._task.cancelling() if self._task is not None else 0
        self._is_cancelled = False

    def cancel(self) -> bool:
        """Interrupt it, once; returns whether it ran."""
        if self._is_cancelled or self._task is None:
            return False
        self._is_cancelled = self._task.cancel()
        return self._is_cancelled

    def is_cancelled_alone(self, error: BaseException | None) -> bool:
        """Take back our cancellation of the task, and tell whether it is the reason why the body has ended."""
        if not self._is_cancelled or self._task is None:
            return False
        left = self._task.uncancel()
        return left <= self._cancellations_before and isinstance(error, asyncio.CancelledError)
