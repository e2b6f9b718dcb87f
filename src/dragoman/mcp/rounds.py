"""Requests whose first answer is not their result: the server wants input, or has begun a task.

In the modern era a server asks us by its result. The request is sent again with our answers and the server's opaque
state, as often as the server wants more. A tool may also run as a task, which is polled until it has ended; it asks
by the state of the task, and is answered by `tasks/update`.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast

from dragoman.errors import DragomanError, RpcError, ServerFailure
from dragoman.text import one_line

MAX_ROUNDS = 100
"""A server that wants input for the hundredth time in one request will never have enough."""

PAUSE_S = 0.05
MAX_PAUSE_S = 2.0
"""The pause before a request is repeated for a server that asks nothing doubles up to this."""

POLL_S = 1.0
"""The pause between two looks at a task, where the server suggests none."""

MIN_POLL_S, MAX_POLL_S = 0.05, 30.0

CANCEL_TIMEOUT_S = 2.0

AnswerRequest = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
"""Answers a request of the server; raises RpcError."""


class AskServer(Protocol):
    """Sends a request to the server; raises ServerFailure and ConnectionClosed."""

    def __call__(
        self, method: str, params: dict[str, Any], *, headers: Mapping[str, str] | None = None
    ) -> Awaitable[dict[str, Any]]: ...


class RequestRounds:
    """Sends requests of the modern era, and answers for them until their results are complete."""

    def __init__(self, ask: AskServer, answer: AnswerRequest) -> None:
        self._ask = ask
        self._answer = answer

    async def run(
        self, method: str, params: dict[str, Any], headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Return the final result of a request; raises ServerFailure and ConnectionClosed."""
        result = await self._ask(method, params, headers=headers)
        pause_s = PAUSE_S
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
                    raise ServerFailure(f"its answer breaks the protocol: the result of {method} is of the kind {kind}")
            more: dict[str, Any] = {}
            if wanted := _requests_in(result):
                more["inputResponses"] = await self._answer_all(wanted)
                pause_s = PAUSE_S
            else:
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, MAX_PAUSE_S)
            if isinstance(result.get("requestState"), str):
                more["requestState"] = result["requestState"]
            result = await self._ask(method, {**params, **more}, headers=headers)
        raise ServerFailure(f"the server wanted more input {MAX_ROUNDS} times; the request was given up")

    async def _answer_all(self, requests: Mapping[str, Any]) -> dict[str, Any]:
        """Answer side by side; the refusal of one is the failure of all, because a result cannot refuse."""
        tasks = {key: asyncio.create_task(self._answer_one(request)) for key, request in requests.items()}
        try:
            await asyncio.gather(*tasks.values())
        except RpcError as refusal:
            raise ServerFailure(f"the server asked for what it does not get: {refusal.message}") from None
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)
        return {key: task.result() for key, task in tasks.items()}

    async def _answer_one(self, request: Any) -> dict[str, Any]:
        fields = cast("dict[str, Any]", request) if isinstance(request, dict) else {}
        method, params = fields.get("method"), fields.get("params")
        if not isinstance(method, str):
            raise ServerFailure("its answer breaks the protocol: a request for input has no method")
        return await self._answer(method, cast("dict[str, Any]", params) if isinstance(params, dict) else {})

    async def _follow(self, task: dict[str, Any]) -> dict[str, Any]:
        """Wait for the end of a task; leaving cancels it."""
        task_id = task.get("taskId")
        if not isinstance(task_id, str):
            raise ServerFailure("its answer breaks the protocol: a task has no taskId")
        answered: set[str] = set()
        try:
            while True:
                match task.get("status"):
                    case "completed":
                        return _result_of(task)
                    case "failed":
                        raise ServerFailure(_why_failed(task))
                    case "cancelled":
                        raise ServerFailure("the server cancelled its task")
                    case "input_required":
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
    """Tell the server that its task is no longer wanted, in bounded time, also while being cancelled."""

    async def tell() -> None:
        with suppress(DragomanError, TimeoutError):
            async with asyncio.timeout(CANCEL_TIMEOUT_S):
                await ask("tasks/cancel", {"taskId": task_id})

    await asyncio.wait([asyncio.create_task(tell())])


def _requests_in(result: Mapping[str, Any]) -> dict[str, Any]:
    given = result.get("inputRequests")
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _result_of(task: Mapping[str, Any]) -> dict[str, Any]:
    result = task.get("result")
    if not isinstance(result, dict):
        raise ServerFailure("its answer breaks the protocol: a completed task has no result")
    return cast("dict[str, Any]", result)


def _why_failed(task: Mapping[str, Any]) -> str:
    error = task.get("error")
    words = cast("dict[str, Any]", error).get("message") if isinstance(error, dict) else task.get("statusMessage")
    return f"its task failed: {words}" if isinstance(words, str) else "its task failed"


def _poll_pause_s(task: Mapping[str, Any]) -> float:
    given = task.get("pollIntervalMs")
    suggested = given / 1000 if isinstance(given, int | float) and not isinstance(given, bool) else POLL_S
    return min(max(suggested, MIN_POLL_S), MAX_POLL_S)
