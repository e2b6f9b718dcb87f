"""A typed ACP conversation over any transport: calls and notifications out, and the routes of those that come in."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Literal, Self, TypeVar

import msgspec
from msgspec import Raw

from dragoman.errors import InvalidParams, MethodNotFound
from dragoman.protocol.decode import ENCODER, decode_params, decode_result, params_decoder
from dragoman.protocol.methods import Method
from dragoman.wire import HEADS, IncomingRequest, Peer, Shortcut, Transport

P = TypeVar("P")
R = TypeVar("R")

RequestHandler = Callable[[P, IncomingRequest], Awaitable[R]]
NotificationHandler = Callable[[P], Awaitable[None] | None]

_log = logging.getLogger("dragoman.protocol")


class Routes:
    """The handlers of one side; a request without a handler is answered `-32601`, such a notification is ignored.

    As agent we take parameters strictly; as client leniently, where the schema says so. `gate`, when given, sees
    every request before it is decoded and may raise. `on_demand`, when given, is called once, with the first method
    that has no handler, to add handlers not needed before. Handlers are not to be changed once they were used.
    """

    def __init__(
        self,
        side: Literal["agent", "client"],
        *,
        gate: Callable[[IncomingRequest], None] | None = None,
        on_demand: "Callable[[Routes], None] | None" = None,
    ) -> None:
        self._lenient = side == "client"
        self._gate = gate
        self._on_demand = on_demand
        self._requests: dict[str, tuple[Method[Any, Any], RequestHandler[Any, Any]]] = {}
        self._notifications: dict[str, tuple[Method[Any, Any], NotificationHandler[Any]]] = {}
        self._extensions: dict[str, RequestHandler[Any, Any]] = {}
        self._extension_notifications: dict[str, NotificationHandler[Any]] = {}

    def on_request(self, method: Method[P, R], handler: RequestHandler[P, R]) -> None:
        """Let `handler` answer a request of the protocol."""
        self._requests[method.name] = (method, handler)

    def on_notification(self, method: Method[P, None], handler: NotificationHandler[P]) -> None:
        """Let `handler` take a notification of the protocol."""
        self._notifications[method.name] = (method, handler)

    def on_extension(self, name: str, handler: RequestHandler[Any, Any]) -> None:
        """Let `handler` answer an extension request, whose name begins with `_`, with its parameters as plain JSON."""
        self._extensions[_extension_name(name)] = handler

    def on_extension_notification(self, name: str, handler: NotificationHandler[Any]) -> None:
        """Let `handler` take an extension notification, whose name begins with `_`."""
        self._extension_notifications[_extension_name(name)] = handler

    async def request(self, request: IncomingRequest) -> Any:
        """Answer a request, for the peer."""
        if self._gate is not None:
            self._gate(request)
        if request.method not in self._requests:
            self._demand()
        if request.method in self._requests:
            method, handler = self._requests[request.method]
            return await handler(decode_params(method, request.params, lenient=self._lenient), request)
        if request.method in self._extensions:
            return await self._extensions[request.method](_decode_json(request.params), request)
        raise MethodNotFound(request.method)

    def find_shortcut(self, method: str) -> Shortcut | None:
        """Return the shortcut to the handler of a notification, for the peer; None for an unknown one."""
        if method not in self._notifications:
            return None
        known, handler = self._notifications[method]
        return Shortcut(HEADS[method], params_decoder(known).decode, handler)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Take a notification, for the peer."""
        if method not in self._notifications:
            self._demand()
        try:
            if method in self._notifications:
                known, handler = self._notifications[method]
                return handler(decode_params(known, params, lenient=self._lenient))
            if method in self._extension_notifications:
                return self._extension_notifications[method](_decode_json(params))
        except InvalidParams as error:
            _log.warning("a %s was ignored: %s", method, error)
            return None
        _log.debug("an unknown notification was ignored: %s", method)
        return None

    def _demand(self) -> None:
        if self._on_demand is not None:
            self._on_demand(self)
            self._on_demand = None  # now, because one that fails is wanted again


class Connection:
    """Calls and notifies the other side with types; messages of the other side go to `routes`.

    Use it as an async context manager: leaving it ends the conversation and all that it started.
    """

    def __init__(self, transport: Transport, routes: Routes) -> None:
        self._peer = Peer(transport, routes, encoder=ENCODER, find_shortcut=routes.find_shortcut)

    async def __aenter__(self) -> Self:
        await self._peer.__aenter__()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self._peer.__aexit__(*exc_info)

    async def call(self, method: Method[P, R], params: P) -> R:
        """Send a request and wait for its result.

        Raises RemoteError, InvalidResult or ConnectionClosed; cancelling the wait cancels the request.
        """
        return decode_result(method, await self._peer.call(method.name, params))

    def notify(self, method: Method[P, None], params: P) -> Coroutine[Any, Any, None]:
        """Send a notification; waits only while the other side does not keep up. Raises ConnectionClosed."""
        return self._peer.notify(method.name, params)

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request, whose name begins with `_`, and return its result as plain JSON."""
        return msgspec.json.decode(await self._peer.call(name, params))

    async def notify_extension(self, name: str, params: Mapping[str, Any]) -> None:
        """Send an extension notification, whose name begins with `_`."""
        await self._peer.notify(name, params)

    def write_lines(self, lines: bytes | memoryview) -> None:
        """Send whole lines that are messages already; `flow` tells when to wait. Raises ConnectionClosed."""
        self._peer.write(lines)

    async def flow(self) -> None:
        """Wait while the other side does not keep up."""
        await self._peer.flow()

    async def wait_ended(self) -> None:
        """Wait until the other side has ended its input and all its requests are answered, within bounds."""
        await self._peer.wait_ended()


def _extension_name(name: str) -> str:
    if not name.startswith("_"):
        raise ValueError(f"{name} is no extension method: their names begin with an underscore")
    return name


def _decode_json(params: Raw) -> Any:
    try:
        return msgspec.json.decode(params)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidParams("params", str(error)) from None
