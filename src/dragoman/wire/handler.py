"""What a peer hands incoming requests and notifications to."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from msgspec import Raw


class IncomingRequest:
    """A request of the other side while it is being answered.

    `on_cancel`, when a handler sets it, is called when the other side cancels the request, in place of
    cancelling the handler's task: for handlers that end by themselves and have an answer for that case.
    """

    __slots__ = ("id", "method", "on_cancel", "params", "task")

    def __init__(self, method: str, params: Raw, request_id: bytes) -> None:
        self.method = method
        self.params = params
        self.id = request_id
        self.on_cancel: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Do what the other side asked for: stop."""
        if self.on_cancel is not None:
            self.on_cancel()
        elif self.task is not None:
            self.task.cancel()


class Handler(Protocol):
    """Answers the requests and takes the notifications of the other side."""

    def request(self, request: IncomingRequest) -> Awaitable[Any]:
        """Answer a request: the result is encoded and sent; an `RpcError` is sent as the error."""
        ...

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Handle a notification, at once or by awaiting what is returned."""
        ...
