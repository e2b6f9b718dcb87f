"""Requests whose first response is not the result: the server wants input, or has started a task.

A modern server requests input inside a result. We send the request again with our answers and the server's opaque
state, until the server returns the final result. A tool may also run as a task. We poll the task until it ends, and
answer its requests for input with `tasks/update`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from dragoman.backoff import Backoff
from dragoman.errors import DragomanError, McpServerError, RpcError
from dragoman.text import one_line

MAX_ROUNDS = 100
"""A server that wants input a hundred times within one request would never stop."""

PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
"""The pause before repeating a request for a server that asks nothing. It doubles up to the maximum."""

POLL_S = 1.0
"""The pause between two polls of a task, if the server suggests none."""

MIN_POLL_S, MAX_POLL_S = 0.05, 30.0

CANCEL_TIMEOUT_S = 2.0

AnswerRequest = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers a request from the server. Raises RpcError."""


class AskServer(Protocol):
    """Sends a request to the server. Raises McpServerError and ConnectionClosedError."""

    def __call__(
        self, method: str, params: dict[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Awaitable[dict[str, Any]]: ...


class RequestRounds:
    """Sends modern requests, and answers the server's requests until the result is complete."""

    def __init__(self, ask: AskServer, answer: AnswerRequest) -> None:
        self._ask = ask
        self._answer = answer

    async def run(
        self, method: str, params: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the final result of a request. Raises McpServerError and ConnectionClosedError."""
        result = await self._ask(method, params, headers=headers)
        backoff = Backoff(PAUSE_S, MAX_PAUSE_S)
        for _ in range(MAX_ROUNDS):
            match result.get("resultType"):
                case None | "complete":
                    return result
                case "task" if method == "tools/call":
                    return await self._follow(result)
                case "input_required":
                    pass
                case other:
                    kind = one_line(str(other), 60)
                    raise McpServerError(
                        f"its answer violates the protocol: the result of {method} has the unknown kind {kind}"
                    )
            more: dict[str, Any] = {}
            if requests := _requests_in(result):
                more["inputResponses"] = await self._answer_all(requests)
                backoff.reset()
            else:
                await asyncio.sleep(backoff.next_s())
            if isinstance(result.get("requestState"), str):
                more["requestState"] = result["requestState"]
            result = await self._ask(method, {**params, **more}, headers=headers)
        raise McpServerError(f"the server asked for input {MAX_ROUNDS} times; the request was abandoned")

    async def _answer_all(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Answer requests concurrently. If one is refused, all fail, because a result cannot contain a refusal."""
        tasks = {key: asyncio.create_task(self._answer_one(request)) for key, request in requests.items()}
        try:
            await asyncio.gather(*tasks.values())
        except RpcError as refusal:
            raise McpServerError(f"the server's request was refused: {refusal.message}") from None
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return {key: task.result() for key, task in tasks.items()}

    async def _answer_one(self, request: Any) -> dict[str, Any]:
        fields = cast("dict[str, Any]", request) if isinstance(request, dict) else {}
        method, params = fields.get("method"), fields.get("params")
        if not isinstance(method, str):
            raise McpServerError("its answer violates the protocol: a request for input has no method")
        return await self._answer(method, cast("dict[str, Any]", params) if isinstance(params, dict) else {})

    async def _follow(self, task: dict[str, Any]) -> dict[str, Any]:
        """Poll a task until it ends. Cancelling the wait cancels the task."""
        task_id = task.get("taskId")
        if not isinstance(task_id, str):
            raise McpServerError("its answer violates the protocol: a task has no taskId")
        answered: set[str] = set()
        try:
            while True:
                match task.get("status"):
                    case "completed":
                        return _result_of(task)
                    case "failed":
                        raise McpServerError(_failure_reason(task))
                    case "cancelled":
                        raise McpServerError("the server cancelled its task")
                    case "input_required":
                        # The server repeats its questions until it has read the answers.
                        new = {key: each for key, each in _requests_in(task).items() if key not in answered}
                        if new:
                            answers = await self._answer_all(new)
                            await self._ask("tasks/update", {"taskId": task_id, "inputResponses": answers})
                            answered |= new.keys()
                    case _:
                        pass
                await asyncio.sleep(_poll_pause_s(task))
                task = await self._ask("tasks/get", {"taskId": task_id})
        except asyncio.CancelledError:
            await cancel_task(self._ask, task_id)
            raise


async def cancel_task(ask: AskServer, task_id: str) -> None:
    """Cancel a task at the server within a bounded time, even while being cancelled ourselves."""

    async def cancel() -> None:
        with suppress(DragomanError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT_S):
                await ask("tasks/cancel", {"taskId": task_id})

    await asyncio.wait([asyncio.create_task(cancel())])


def _requests_in(result: Mapping[str, Any]) -> dict[str, Any]:
    requests = result.get("inputRequests")
    return cast("dict[str, Any]", requests) if isinstance(requests, dict) else {}


def _result_of(task: Mapping[str, Any]) -> dict[str, Any]:
    result = task.get("result")
    if not isinstance(result, dict):
        raise McpServerError("its answer violates the protocol: a completed task has no result")
    return cast("dict[str, Any]", result)


def _failure_reason(task: Mapping[str, Any]) -> str:
    error = task.get("error")
    reason = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else task.get("statusMessage")
    return f"its task failed: {reason}" if isinstance(reason, str) else "its task failed"


def _poll_pause_s(task: Mapping[str, Any]) -> float:
    interval_ms = task.get("pollIntervalMs")
    suggested = (
        interval_ms / 1000 if isinstance(interval_ms, int | float) and not isinstance(interval_ms, bool) else POLL_S
    )
    return min(max(suggested, MIN_POLL_S), MAX_POLL_S)
