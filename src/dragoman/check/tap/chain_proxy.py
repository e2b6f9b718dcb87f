"""A proxy in a conductor's chain that forwards everything, without I/O.

A conductor starts each component of a chain and connects them. A proxy therefore has one connection for both of its
neighbours. Messages from its predecessor (the client, or the previous proxy) arrive unchanged. Messages from its
successor (the agent, or the next proxy) arrive inside `proxy/successor`. It answers the same way:

    predecessor  request M              →  request proxy/successor {M}    successor
    predecessor  response to M          ←  response, unchanged            successor
    predecessor  request N              ←  request proxy/successor {N}    successor
    predecessor  response to N          →  response, unchanged            successor

Each request is forwarded under one of our ids. A cancellation names the id used on its connection, so it is not
forwarded but sent again with the other id. `proxy/initialize` is forwarded as `initialize` and makes the component a
proxy. The `_meta` of a `proxy/successor` belongs to one hop and is dropped. The `_meta` of the inner message is kept.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from dragoman.check.tap.feed import FrameKind
from dragoman.errors import ErrorCode, InvalidParamsError, RpcError
from dragoman.protocol import methods
from dragoman.wire import Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import NO_PARAMS, NULL_ID

INITIALIZE = methods.INITIALIZE.name
PROXY_INITIALIZE = methods.PROXY_INITIALIZE.name
SUCCESSOR = methods.PROXY_SUCCESSOR.name
CANCEL = methods.CANCEL_REQUEST.name

_NO_CHAIN = (
    "this is dragoman tap --proxy, a proxy for a conductor's chain, and has no agent of its own; "
    "it must be sent proxy/initialize first. To watch one agent, start dragoman tap -- AGENT"
)


class Neighbour(Enum):
    """The two sides of a proxy."""

    PREDECESSOR = FrameKind.CLIENT
    SUCCESSOR = FrameKind.AGENT


class RelayedMessage(NamedTuple):
    """The line for the conductor, and the message as client and agent would exchange it without a chain."""

    line: bytes = b""
    kind: FrameKind = FrameKind.CLIENT
    shown: bytes = b""


class _ForwardedRequest(NamedTuple):
    """A forwarded request, with the id under which it arrived."""

    origin: Neighbour
    id: bytes


class _Wrapped(msgspec.Struct):
    """The params of `proxy/successor`."""

    method: str
    params: Raw = NO_PARAMS


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: Raw


class ChainProxy:
    """Relays the lines of the conductor one after another."""

    def __init__(self) -> None:
        self._is_in_chain = False
        self._last_id = 0
        self._forwarded: dict[bytes, _ForwardedRequest] = {}
        """Unanswered requests, by the ids under which they were forwarded."""

    def relay(self, line: bytes | Oversized) -> RelayedMessage:
        """Return the relayed message for a line from the conductor."""
        message = parse(line)
        if isinstance(message, Malformed):
            return self._relay_malformed(message, line)
        assert isinstance(line, bytes)  # noqa: S101 -- a line that is too long is malformed
        if message.method is None:
            return self._relay_response(message, line)
        try:
            return self._relay_call(message.method, message, line)
        except RpcError as error:
            return RelayedMessage() if message.id is UNSET else RelayedMessage(_refusal(bytes(message.id), error))

    def _relay_call(self, method: str, message: Message, line: bytes) -> RelayedMessage:
        if method == PROXY_INITIALIZE and message.id is not UNSET:
            self._is_in_chain = True
            shown = _with(line, method=INITIALIZE)
            return self._wrap(Neighbour.PREDECESSOR, INITIALIZE, message, shown)
        if not self._is_in_chain:
            raise RpcError(ErrorCode.INVALID_REQUEST, _NO_CHAIN)
        if method == SUCCESSOR:
            return self._unwrap(message)
        if method == CANCEL:
            return self._cancel(message, line)
        return self._wrap(Neighbour.PREDECESSOR, method, message, line)

    def _wrap(self, origin: Neighbour, method: str, message: Message, shown: bytes) -> RelayedMessage:
        """Wrap a message from the predecessor for the successor."""
        inner = {"method": method, **_params_field(message.params)}
        line = _encode(self._new_id(origin, message.id), SUCCESSOR, {"params": inner})
        return RelayedMessage(line, FrameKind.CLIENT, shown)

    def _unwrap(self, message: Message) -> RelayedMessage:
        """Unwrap a message from the successor for the predecessor."""
        try:
            wrapped = msgspec.json.decode(message.params, type=_Wrapped)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidParamsError("params", f"{SUCCESSOR} wraps a method and its params: {error}") from None
        line = _encode(self._new_id(Neighbour.SUCCESSOR, message.id), wrapped.method, _params_field(wrapped.params))
        return RelayedMessage(line, FrameKind.AGENT, line)

    def _relay_response(self, message: Message, line: bytes) -> RelayedMessage:
        forwarded = None if message.id is UNSET else self._forwarded.pop(bytes(message.id), None)
        if forwarded is None:
            return RelayedMessage()
        answer = _with(line, id=Raw(forwarded.id))
        if forwarded.origin is Neighbour.PREDECESSOR:
            return RelayedMessage(answer, FrameKind.AGENT, answer)
        return RelayedMessage(answer, FrameKind.CLIENT, line)

    def _cancel(self, message: Message, line: bytes) -> RelayedMessage:
        """Cancel the forwarded request of a cancelled one. Ignore a request that was already answered."""
        try:
            cancelled = bytes(msgspec.json.decode(message.params, type=_Cancelled).request_id)
        except (msgspec.DecodeError, RecursionError):
            return RelayedMessage()
        for id_, forwarded in self._forwarded.items():
            if forwarded.id == cancelled:
                own = _with(line, params={"requestId": Raw(id_)})
                shown = line if forwarded.origin is Neighbour.PREDECESSOR else own
                return RelayedMessage(own, forwarded.origin.value, shown)
        return RelayedMessage()

    def _relay_malformed(self, malformed: Malformed, line: bytes | Oversized) -> RelayedMessage:
        """Refuse an unreadable request. Answer a request whose response is unreadable."""
        noise = line if isinstance(line, bytes) else b""
        if malformed.answerable:
            refusal = _refusal(malformed.id, RpcError(malformed.code, malformed.problem))
            return RelayedMessage(refusal, FrameKind.CLIENT, noise)
        forwarded = self._forwarded.pop(malformed.id, None)
        if forwarded is None:
            return RelayedMessage(b"", FrameKind.CLIENT, noise)
        problem = f"the answer was dropped, because {malformed.problem}"
        refusal = _refusal(forwarded.id, RpcError(ErrorCode.INTERNAL_ERROR, problem))
        return RelayedMessage(refusal, FrameKind.AGENT, refusal)

    def _new_id(self, origin: Neighbour, id_: Raw | msgspec.UnsetType) -> bytes | None:
        """Return the id under which to forward a request, or None for a notification. Raises RpcError."""
        if id_ is UNSET:
            return None
        came = bytes(id_)
        if came != NULL_ID and any(forwarded.id == came for forwarded in self._forwarded.values()):
            problem = (
                f"a request with the id {came.decode(errors='replace')} is still running; use a new id for each request"
            )
            raise RpcError(ErrorCode.INVALID_REQUEST, problem)
        self._last_id += 1
        own = b"%d" % self._last_id
        self._forwarded[own] = _ForwardedRequest(origin, came)
        return own


def _params_field(params: Raw) -> dict[str, Raw]:
    return {} if params is NO_PARAMS or bytes(params) == b"null" else {"params": params}


def _encode(id_: bytes | None, method: str, params: Mapping[str, Any]) -> bytes:
    head: dict[str, Any] = {"jsonrpc": "2.0"} if id_ is None else {"jsonrpc": "2.0", "id": Raw(id_)}
    return msgspec.json.encode({**head, "method": method, **params})


def _with(line: bytes, **changes: Any) -> bytes:
    """Return a message with some members replaced. The rest is unchanged."""
    return msgspec.json.encode({**msgspec.json.decode(line, type=dict[str, Raw]), **changes})


def _refusal(id_: bytes, error: RpcError) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})
