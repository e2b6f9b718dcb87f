"""A typed ACP connection over any transport: outgoing calls and notifications, and routes for incoming messages."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Literal, Self, TypeVar

import msgspec
from msgspec import Raw

from dragoman.errors import InvalidParamsError, MethodNotFoundError
from dragoman.protocol.decode import ENCODER, decode_params, decode_result, params_decoder
from dragoman.protocol.methods import CANCEL_REQUEST, Method
from dragoman.wire import HEADS, IncomingRequest, Peer, Shortcut, Transport

P = TypeVar("P")
R = TypeVar("R")

RequestHandler = Callable[[P], Awaitable[R]]
IncomingRequestHandler = Callable[[P, IncomingRequest], Awaitable[R]]
NotificationHandler = Callable[[P], Awaitable[None] | None]

_log = logging.getLogger("dragoman.protocol")


class Routes:
    """The message handlers of one side.

    A request without a handler is answered with `-32601`. A notification without one is ignored.

    An agent decodes parameters strictly, a client as leniently as the schema allows. `gate` is called with each
    request before it is decoded, and may raise. `on_demand` is called once, with the first method without a handler, to
    register handlers that were not needed before. Do not change handlers after their first use.
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
        self._requests: dict[str, tuple[Method[Any, Any], IncomingRequestHandler[Any, Any]]] = {}
        self._notifications: dict[str, tuple[Method[Any, Any], NotificationHandler[Any]]] = {}
        self._extensions: dict[str, RequestHandler[Any, Any]] = {}

    def on_request(self, method: Method[P, R], handler: RequestHandler[P, R]) -> None:
        """Answer a request of the protocol with `handler(params)`."""
        self._requests[method.name] = (method, lambda params, _: handler(params))

    def on_incoming_request(self, method: Method[P, R], handler: IncomingRequestHandler[P, R]) -> None:
        """Answer a request of the protocol with `handler(params, request)`, for example to set `request.on_cancel`."""
        self._requests[method.name] = (method, handler)

    def on_notification(self, method: Method[P, None], handler: NotificationHandler[P]) -> None:
        """Call `handler(params)` for a notification of the protocol."""
        self._notifications[method.name] = (method, handler)

    def on_extension(self, name: str, handler: RequestHandler[Any, Any]) -> None:
        """Answer an extension request with `handler(params)`. Its name starts with `_`, and params are plain JSON."""
        self._extensions[_extension_name(name)] = handler

    async def request(self, request: IncomingRequest) -> Any:
        """Answer a request from the peer."""
        if self._gate is not None:
            self._gate(request)
        if request.method not in self._requests:
            self._load_handlers()
        if request.method in self._requests:
            method, handler = self._requests[request.method]
            return await handler(decode_params(method, request.params, lenient=self._lenient), request)
        if request.method in self._extensions:
            return await self._extensions[request.method](_decode_json(request.params))
        if request.method in self._notifications or request.method == CANCEL_REQUEST.name:
            sentence = f"{request.method} is a notification: send it without an id"
            raise MethodNotFoundError(request.method, sentence=sentence)
        raise MethodNotFoundError(request.method)

    def find_shortcut(self, method: str) -> Shortcut | None:
        """Return the shortcut to a notification's handler for the peer, or None if there is none."""
        if method not in self._notifications:
            return None
        known, handler = self._notifications[method]
        return Shortcut(HEADS[method], params_decoder(known).decode, handler)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Handle a notification from the peer."""
        if method not in self._notifications:
            self._load_handlers()
        try:
            if method in self._notifications:
                known, handler = self._notifications[method]
                return handler(decode_params(known, params, lenient=self._lenient))
        except InvalidParamsError as error:
            _log.warning("a %s was ignored: %s", method, error)
            return None
        _log.debug("an unknown notification was ignored: %s", method)
        return None

    def _load_handlers(self) -> None:
        if self._on_demand is not None:
            self._on_demand(self)
            self._on_demand = None  # only after it succeeded, so that a failed call is repeated


class Connection:
    """Sends typed calls and notifications to the other side. Its messages are handled by `routes`.

    Use it as an async context manager. Leaving the context closes the connection and everything that it started.
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

        Raises RemoteError, InvalidResultError or ConnectionClosedError. Cancelling the wait cancels the request.
        """
        return decode_result(method, await self._peer.call(method.name, params))

    def notify(self, method: Method[P, None], params: P) -> Coroutine[Any, Any, None]:
        """Send a notification. Wait only if the other side reads too slowly. Raises ConnectionClosedError."""
        return self._peer.notify(method.name, params)

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request and return its result as plain JSON. Its name starts with `_`."""
        return msgspec.json.decode(await self._peer.call(name, params))

    async def notify_extension(self, name: str, params: Mapping[str, Any]) -> None:
        """Send an extension notification. Its name starts with `_`."""
        await self._peer.notify(name, params)

    def write_lines(self, lines: bytes | memoryview) -> None:
        """Send whole lines that are already encoded. Await `flow` for back-pressure. Raises ConnectionClosedError."""
        self._peer.write(lines)

    async def flow(self) -> None:
        """Wait while the other side reads too slowly."""
        await self._peer.flow()

    async def wait_ended(self) -> None:
        """Wait until the other side has closed its input and all its requests are answered, within a time limit."""
        await self._peer.wait_ended()


def _extension_name(name: str) -> str:
    if not name.startswith("_"):
        raise ValueError(f"{name} is not an extension method: their names begin with an underscore")
    return name


def _decode_json(params: Raw) -> Any:
    try:
        return msgspec.json.decode(params)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidParamsError("params", str(error)) from None
