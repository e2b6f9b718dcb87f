"""The running work of a tool call. It can be cancelled while its turn continues."""

import asyncio

from dragoman.agent.turns.prepared_call import ToolError, ToolOutcome
from dragoman.telemetry.operation import Operation


class CallCancelledError(ToolError):
    """The user cancelled one tool call. The turn continues, and ends if its function does not handle this."""


class PreparedRun:
    """A running prepared call, in a separate task."""

    def __init__(self, work: asyncio.Future[ToolOutcome]) -> None:
        self.work = work
        self.is_cancelled = False

    def cancel(self) -> bool:
        """Cancel the call once. Return whether it was running."""
        if self.is_cancelled:
            return False
        self.is_cancelled = self.work.cancel()
        return self.is_cancelled


class CallBody:
    """The body of an `async with`. It is part of the program's task, which continues after the body."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self._task = asyncio.current_task()
        self._cancellations_before = self._task.cancelling() if self._task is not None else 0
        self._is_cancelled = False

    def cancel(self) -> bool:
        """Cancel the body once. Return whether it was running."""
        if self._is_cancelled or self._task is None:
            return False
        self._is_cancelled = self._task.cancel()
        return self._is_cancelled

    def undo_cancel(self, error: BaseException | None) -> bool:
        """Undo our cancellation of the task. Return whether only this cancellation ended the body."""
        if not self._is_cancelled or self._task is None:
            return False
        left = self._task.uncancel()
        return left <= self._cancellations_before and isinstance(error, asyncio.CancelledError)
