"""The SDK's session on our own wire: its typed layer above, our peer, framing and transports below.

The SDK is imported here, so this module is imported on first need, in a thread (see `server`).
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from itertools import count
from typing import Any

import anyio
import anyio.abc
import msgspec
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    ProgressFnT,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import REQUEST_TIMEOUT, RequestId
from msgspec import Raw

from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError, RpcError
from dragoman.wire import IncomingRequest, Peer, Transport

CANCELLED = "notifications/cancelled"
PROGRESS = "notifications/progress"


class Context:
    """What the SDK wants to know about a message that came in."""

    def __init__(self, kind: str, request_id: RequestId | None = None) -> None:
        self.transport = TransportContext(kind=kind, can_send_request=False)
        self.can_send_request = False
        self.request_id = request_id
        self.message_metadata = None
        self.cancel_requested = anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        raise NotImplementedError("a client asks a server outside of the server's own requests only")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        raise NotImplementedError("a client tells a server things outside of the server's own requests only")

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Say nothing: no request of a server takes long enough."""


class ProgressTokens:
    """Which running call a progress notification belongs to."""

    def __init__(self) -> None:
        self._listeners: dict[int, ProgressFnT] = {}
        self._numbers = count(1)

    def add(self, params: dict[str, Any], listener: ProgressFnT) -> int:
        """Write a token into the parameters of a request, and return it."""
        token = next(self._numbers)
        params["_meta"] = {**(params.get("_meta") or {}), "progressToken": token}
        self._listeners[token] = listener
        return token

    def remove(self, token: int | None) -> None:
        """Forget a call that is done."""
        if token is not None:
            self._listeners.pop(token, None)

    async def tell(self, params: Mapping[str, Any]) -> None:
        """Tell whoever listens; what belongs to no call is dropped."""
        token = params.get("progressToken")
        listener = self._listeners.get(token) if isinstance(token, int) else None
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if listener is not None and isinstance(progress, int | float):
            await listener(
                float(progress),
                float(total) if isinstance(total, int | float) else None,
                message if isinstance(message, str) else None,
            )


class Inbound:
    """What a server sends, handed to the SDK."""

    def __init__(self, kind: str, tokens: ProgressTokens) -> None:
        self.kind = kind
        self._tokens = tokens
        self._on_request: OnRequest | None = None
        self._on_notify: OnNotify | None = None
        self._intercept: OnNotifyIntercept | None = None

    def attach(self, on_request: OnRequest, on_notify: OnNotify, intercept: OnNotifyIntercept | None) -> None:
        """Hand everything to this session from now on."""
        self._on_request, self._on_notify, self._intercept = on_request, on_notify, intercept

    async def answer(self, method: str, params: dict[str, Any], request_id: RequestId) -> dict[str, Any]:
        """Answer a request; raises RpcError."""
        assert self._on_request is not None  # noqa: S101 -- attached before anything is read
        try:
            return await self._on_request(Context(self.kind, request_id), method, params)
        except MCPError as error:
            raise RpcError(error.code, error.data, message=error.message) from None

    async def take(self, method: str, params: dict[str, Any]) -> None:
        """Take a notification."""
        if run_notify_intercept(self._intercept, method, params):
            return
        if method == PROGRESS:
            await self._tokens.tell(params)
        elif self._on_notify is not None:
            await self._on_notify(Context(self.kind), method, params)


class OwnDispatcher(ABC):
    """What our dispatchers share: timeouts, progress, and errors as the SDK knows them."""

    has_forgotten_us = False
    """Whether the server no longer knows the conversation; only one at an address can say so."""

    def __init__(self, kind: str) -> None:
        self.closed = asyncio.Event()
        self._tokens = ProgressTokens()
        self._inbound = Inbound(kind, self._tokens)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        """Take what the server sends until it is gone. Raises what keeps it from being reached."""
        self._inbound.attach(on_request, on_notify, on_notify_intercept)
        try:
            await self._converse(task_status.started)
        finally:
            self.closed.set()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Ask the server; raises MCPError, and ConnectionClosed with the reason when it is gone."""
        opts = opts or {}
        sent, token = dict(params or {}), None
        if "on_progress" in opts:
            token = self._tokens.add(sent, opts["on_progress"])
        try:
            async with asyncio.timeout(opts.get("timeout")):
                return await self._ask(method, sent, cancellable=opts.get("cancel_on_abandon", True))
        except TimeoutError:
            raise MCPError(code=REQUEST_TIMEOUT, message=f"{method} was not answered in time") from None
        except RemoteError as error:
            raise MCPError(code=error.code, message=error.message, data=error.data) from None
        finally:
            self._tokens.remove(token)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Tell the server something; nothing happens when it is gone."""
        del opts
        with suppress(ConnectionClosed):
            await self._tell(method, dict(params or {}))

    def explain(self, message: str) -> str:
        """Return the server's own words: here nothing else is known."""
        return message

    @abstractmethod
    async def _converse(self, started: Callable[[], None]) -> None: ...

    @abstractmethod
    async def _ask(self, method: str, params: dict[str, Any], *, cancellable: bool) -> dict[str, Any]: ...

    @abstractmethod
    async def _tell(self, method: str, params: dict[str, Any]) -> None: ...


class PeerDispatcher(OwnDispatcher):
    """Speaks MCP over any of our transports."""

    def __init__(self, transport: Transport, kind: str) -> None:
        super().__init__(kind)
        self._peer = Peer(transport, self, cancel_method=CANCELLED, answers_malformed=False)

    async def request(self, request: IncomingRequest) -> dict[str, Any]:
        """Answer a request of the server, for the peer."""
        params = decode_object(request.method, request.params)
        return await self._inbound.answer(request.method, params, msgspec.json.decode(request.id))

    def notification(self, method: str, params: Raw) -> Awaitable[None]:
        """Take a notification of the server, for the peer."""
        return self._inbound.take(method, decode_object(method, params))

    async def _converse(self, started: Callable[[], None]) -> None:
        async with self._peer as peer:
            started()
            await peer.wait_ended()

    async def _ask(self, method: str, params: dict[str, Any], *, cancellable: bool) -> dict[str, Any]:
        return decode_object(method, await self._peer.call(method, params, cancellable=cancellable))

    async def _tell(self, method: str, params: dict[str, Any]) -> None:
        await self._peer.notify(method, params)


def decode_object(method: str, raw: Raw) -> dict[str, Any]:
    """Return a JSON object; raises InvalidResult for anything else."""
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidResult(method, str(error)) from None
