"""The handler of incoming requests and notifications, and a shortcut for the most frequent notification.

The last notification is the most likely one to arrive next. The shortcut accepts a line if it begins byte for byte as
we would write that notification, ends in a brace, and the rest decodes as the params of the method. Such a line cannot
contain anything else, so its envelope need not be decoded. Every other line is parsed as a whole.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw

_encode = msgspec.json.Encoder().encode

_MAX_HEADS = 256
"""The number of methods that are remembered. A relay passes on methods that its peers invent."""


class IncomingRequest:
    """A request of the other side that is being answered.

    A handler may set `on_cancel`. It is called when the other side cancels the request, instead of cancelling the
    handler's task. This is for handlers that stop on their own and have an answer for that case.
    """

    __slots__ = ("id", "method", "on_cancel", "params", "task")

    def __init__(self, method: str, params: Raw, request_id: bytes) -> None:
        self.method = method
        self.params = params
        self.id = request_id
        self.on_cancel: Callable[[], None] | None = None
        self.task: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """Cancel the request because the other side asked for it."""
        if self.on_cancel is not None:
            self.on_cancel()
        elif self.task is not None:
            self.task.cancel()


class Handler(Protocol):
    """Answers the requests and handles the notifications of the other side."""

    def request(self, request: IncomingRequest) -> Awaitable[Any]:
        """Answer a request. The result is encoded and sent, and an `RpcError` is sent as the error."""
        ...

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Handle a notification at once, or return a coroutine that handles it."""
        ...


class NotificationHeads(dict[str, bytes]):
    """The beginning of a notification up to its params, by method."""

    def __missing__(self, method: str) -> bytes:
        head = b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method)
        if len(self) < _MAX_HEADS:
            self[method] = head
        return head


HEADS = NotificationHeads()


class Shortcut(NamedTuple):
    """The beginning of a notification's line, the decoder of the rest, and the handler."""

    head: bytes
    decode: Callable[[bytes], Any]
    handle: Callable[[Any], Awaitable[None] | None]


def _refuse(rest: bytes) -> None:
    raise msgspec.DecodeError(rest)


NO_SHORTCUT = Shortcut(b"\n", _refuse, _refuse)
"""Matches no line, because no line begins with a newline."""
