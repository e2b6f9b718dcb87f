"""A typed ACP conversation over any transport."""

from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Self, TypeVar

import msgspec

from dragoman.protocol.decode import ENCODER, decode_result, encode
from dragoman.protocol.methods import Method
from dragoman.protocol.routes import Routes
from dragoman.wire import Peer, Transport

P = TypeVar("P")
R = TypeVar("R")


class Connection:
    """Calls and notifies the other side with types; what the other side sends goes to `routes`.

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

    def write_updates(self, session_id: str, updates: Sequence[bytes | msgspec.Raw]) -> None:
        """Send updates that are JSON already, each in its own `session/update`; `flow` tells when to wait.

        Raises ConnectionClosed.
        """
        if updates:
            head = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":' % encode(session_id)
            self._peer.write(head + (b"}}\n" + head).join(updates) + b"}}\n")

    async def flow(self) -> None:
        """Wait while the other side does not keep up."""
        await self._peer.flow()

    async def wait_ended(self) -> None:
        """Wait until the other side said its last and what it asked for was answered, within bounds."""
        await self._peer.wait_ended()
