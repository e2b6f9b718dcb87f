"""The handler of incoming requests and notifications, and the shortcut to it for the most frequent notification.

The notification that came last is the likeliest to come next. A line that begins to the letter as we would write
one, ends in a brace, and whose rest decodes as the params of that method, can have nothing else in it: it is that
notification, and its envelope need not be decoded first. Every other line, and every one that does not decode, is
parsed as a whole.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

import msgspec
from msgspec import Raw

_encode = msgspec.json.Encoder().encode

_MAX_HEADS = 256
"""A relay passes on methods that its peers invent; at most this many are remembered."""


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
        """Cancel, at the request of the other side."""
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
        """Handle a notification, at once or by awaiting the returned coroutine."""
        ...


class NotificationHeads(dict[str, bytes]):
    """The beginning of a notification, up to its params, by method."""

    def __missing__(self, method: str) -> bytes:
        head = b'{"jsonrpc":"2.0","method":%b,"params":' % _encode(method)
        if len(self) < _MAX_HEADS:
            self[method] = head
        return head


HEADS = NotificationHeads()


class Shortcut(NamedTuple):
    """The beginnings of the lines of one method, the decoder of the rest, and the handler."""

    head: bytes
    decode: Callable[[bytes], Any]
    handle: Callable[[Any], Awaitable[None] | None]


def _refuse(rest: bytes) -> None:
    raise msgspec.DecodeError(rest)


NO_SHORTCUT = Shortcut(b"\n", _refuse, _refuse)
"""Fits no line: none begins with a newline."""
