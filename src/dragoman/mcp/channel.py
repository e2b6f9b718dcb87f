"""A way to talk with a server: requests and notifications, whatever carries them."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec
from msgspec import Raw

from dragoman.errors import ErrorCode, InvalidResult, RpcError
from dragoman.wire import IncomingRequest, Peer, Transport

CANCELLED = "notifications/cancelled"

_log = logging.getLogger("dragoman.mcp")


class InboundHandler(Protocol):
    """Who takes what a server sends by itself."""

    async def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Answer a request; raises RpcError."""
        ...

    async def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification."""
        ...


class Channel(Protocol):
    """An open way; `closed` is set when the server is gone."""

    closed: asyncio.Event
    version: str | None
    """The version of MCP that was agreed on, for those that have to send it along."""

    async def ask(self, method: str, params: dict[str, Any], *, cancellable: bool = True) -> dict[str, Any]:
        """Send a request; cancelling the wait cancels it, if it may be.

        Raises RemoteError, InvalidResult and ConnectionClosed.
        """
        ...

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification; raises ConnectionClosed."""
        ...

    def explain(self, message: str) -> str:
        """Return what a server said was wrong, in better words where the channel knows more."""
        ...

    @property
    def has_forgotten_us(self) -> bool:
        """Whether the server no longer knows the conversation."""
        ...


class PeerChannel:
    """Over any of our transports."""

    has_forgotten_us = False
    version: str | None = None

    def __init__(self, transport: Transport, inbound: InboundHandler) -> None:
        self.closed = asyncio.Event()
        self.peer = Peer(transport, self, cancel_method=CANCELLED, strict=False)
        self._inbound = inbound

    async def ask(self, method: str, params: dict[str, Any], *, cancellable: bool = True) -> dict[str, Any]:
        return decode_object(method, await self.peer.call(method, params, cancellable=cancellable))

    async def tell(self, method: str, params: dict[str, Any]) -> None:
        await self.peer.notify(method, params)

    def explain(self, message: str) -> str:
        return message

    async def request(self, request: IncomingRequest) -> dict[str, Any]:
        """Answer a request of the server, for the peer."""
        try:
            params = decode_object(request.method, request.params)
        except InvalidResult:
            raise RpcError(ErrorCode.INVALID_PARAMS, "expected an object of parameters") from None
        return await self._inbound.answer(request.method, params)

    def notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        """Take a notification of the server, for the peer."""
        try:
            return self._inbound.take(method, decode_object(method, params))
        except InvalidResult:
            _log.warning("a notification whose parameters are no object was ignored")
            return None

    async def watch(self) -> None:
        """Say when the server is gone."""
        await self.peer.wait_ended()
        self.closed.set()


@asynccontextmanager
async def open_peer(transport: Transport, inbound: InboundHandler) -> AsyncGenerator[PeerChannel]:
    """Talk over a transport of ours."""
    channel = PeerChannel(transport, inbound)
    async with channel.peer:
        watch = asyncio.create_task(channel.watch())
        try:
            yield channel
        finally:
            watch.cancel()
            channel.closed.set()


def decode_object(method: str, raw: Raw) -> dict[str, Any]:
    """Return a JSON object; raises InvalidResult for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidResult(method, str(error)) from None
