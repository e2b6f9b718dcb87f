"""A proxy in a conductor's chain that passes everything on, without I/O.

A conductor starts each component of a chain and stands between them, so a proxy has one connection for both of its
neighbours. Messages of its predecessor (the client, or the proxy before) come as they are; those of its successor (the
agent, or the next proxy) come inside `proxy/successor`. It answers the same way:

    predecessor  request M              →  request proxy/successor {M}    successor
    predecessor  response to M          ←  response, unchanged            successor
    predecessor  request N              ←  request proxy/successor {N}    successor
    predecessor  response to N          →  response, unchanged            successor

Each request goes on under an id of ours, and a cancellation of it names that id on the same connection: it is not
passed on, but sent anew. `proxy/initialize` is passed on as `initialize` and makes the component a proxy. The `_meta`
of a `proxy/successor` itself belongs to one hop and is dropped; that of the message inside stays.
"""

from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw

from dragoman.check.tap.feed import FrameKind
from dragoman.errors import ErrorCode, InvalidParams, RpcError
from dragoman.wire import Malformed, Message, Oversized, error_object, parse
from dragoman.wire.message import NO_PARAMS, NULL_ID

INITIALIZE = "initialize"
PROXY_INITIALIZE = "proxy/initialize"
SUCCESSOR = "proxy/successor"
CANCEL = "$/cancel_request"

_NO_CHAIN = (
    "this is dragoman tap --proxy, a proxy for a conductor's chain, and has no agent of its own; "
    "it has to be sent proxy/initialize first. To watch one agent, start dragoman tap -- AGENT"
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


class _PassedRequest(NamedTuple):
    """A request that went on, under the id that it came with."""

    origin: Neighbour
    id: bytes


class _Wrapped(msgspec.Struct):
    """The params of `proxy/successor`."""

    method: str
    params: Raw = NO_PARAMS


class _Cancelled(msgspec.Struct, rename="camel"):
    request_id: Raw


class ChainProxy:
    """Takes the lines of the conductor one after the other."""

    def __init__(self) -> None:
        self._is_in_chain = False
        self._last_id = 0
        self._passed: dict[bytes, _PassedRequest] = {}
        """Requests that are not answered, by the ids that they went on with."""

    def take(self, line: bytes | Oversized) -> RelayedMessage:
        """Return what becomes of a line."""
        message = parse(line)
        if isinstance(message, Malformed):
            return self._take_malformed(message, line)
        assert isinstance(line, bytes)  # noqa: S101 -- a line that is too long is malformed
        if message.method is None:
            return self._take_response(message, line)
        try:
            return self._take_call(message.method, message, line)
        except RpcError as error:
            return RelayedMessage() if message.id is UNSET else RelayedMessage(_refusal(bytes(message.id), error))

    def _take_call(self, method: str, message: Message, line: bytes) -> RelayedMessage:
        if method == PROXY_INITIALIZE and message.id is not UNSET:
            self._is_in_chain = True
            shown = _with(line, method=INITIALIZE)
            return self._pass(Neighbour.PREDECESSOR, INITIALIZE, message, shown)
        if not self._is_in_chain:
            raise RpcError(ErrorCode.INVALID_REQUEST, _NO_CHAIN)
        if method == SUCCESSOR:
            return self._unwrap(message)
        if method == CANCEL:
            return self._cancel(message, line)
        return self._pass(Neighbour.PREDECESSOR, method, message, line)

    def _pass(self, origin: Neighbour, method: str, message: Message, shown: bytes) -> RelayedMessage:
        """Wrap a message of the predecessor for the successor."""
        inner = {"method": method, **_given(message.params)}
        line = _make(self._new_id(origin, message.id), SUCCESSOR, {"params": inner})
        return RelayedMessage(line, FrameKind.CLIENT, shown)

    def _unwrap(self, message: Message) -> RelayedMessage:
        """Take a message of the successor out of its envelope for the predecessor."""
        try:
            wrapped = msgspec.json.decode(message.params, type=_Wrapped)
        except (msgspec.DecodeError, RecursionError) as error:
            raise InvalidParams("params", f"{SUCCESSOR} wraps a method and its params: {error}") from None
        line = _make(self._new_id(Neighbour.SUCCESSOR, message.id), wrapped.method, _given(wrapped.params))
        return RelayedMessage(line, FrameKind.AGENT, line)

    def _take_response(self, message: Message, line: bytes) -> RelayedMessage:
        passed = None if message.id is UNSET else self._passed.pop(bytes(message.id), None)
        if passed is None:
            return RelayedMessage()
        answer = _with(line, id=Raw(passed.id))
        if passed.origin is Neighbour.PREDECESSOR:
            return RelayedMessage(answer, FrameKind.AGENT, answer)
        return RelayedMessage(answer, FrameKind.CLIENT, line)

    def _cancel(self, message: Message, line: bytes) -> RelayedMessage:
        """Cancel the request that went on for the one that is cancelled; one that was answered meanwhile is over."""
        try:
            cancelled = bytes(msgspec.json.decode(message.params, type=_Cancelled).request_id)
        except (msgspec.DecodeError, RecursionError):
            return RelayedMessage()
        for id_, passed in self._passed.items():
            if passed.id == cancelled:
                own = _with(line, params={"requestId": Raw(id_)})
                shown = line if passed.origin is Neighbour.PREDECESSOR else own
                return RelayedMessage(own, passed.origin.value, shown)
        return RelayedMessage()

    def _take_malformed(self, malformed: Malformed, line: bytes | Oversized) -> RelayedMessage:
        """Refuse a request that cannot be read, and answer the one whose answer cannot be."""
        noise = line if isinstance(line, bytes) else b""
        if malformed.answerable:
            refusal = _refusal(malformed.id, RpcError(malformed.code, malformed.problem))
            return RelayedMessage(refusal, FrameKind.CLIENT, noise)
        passed = self._passed.pop(malformed.id, None)
        if passed is None:
            return RelayedMessage(b"", FrameKind.CLIENT, noise)
        problem = f"the answer was dropped on its way, because {malformed.problem}"
        refusal = _refusal(passed.id, RpcError(ErrorCode.INTERNAL_ERROR, problem))
        return RelayedMessage(refusal, FrameKind.AGENT, refusal)

    def _new_id(self, origin: Neighbour, id_: Raw | msgspec.UnsetType) -> bytes | None:
        """Return the id under which a request goes on; None for a notification. Raises RpcError."""
        if id_ is UNSET:
            return None
        came = bytes(id_)
        if came != NULL_ID and any(passed.id == came for passed in self._passed.values()):
            problem = f"a request with the id {came.decode(errors='replace')} is still under way; give each its own"
            raise RpcError(ErrorCode.INVALID_REQUEST, problem)
        self._last_id += 1
        own = b"%d" % self._last_id
        self._passed[own] = _PassedRequest(origin, came)
        return own


def _given(params: Raw) -> dict[str, Raw]:
    return {} if params is NO_PARAMS or bytes(params) == b"null" else {"params": params}


def _make(id_: bytes | None, method: str, params: Mapping[str, Any]) -> bytes:
    head: dict[str, Any] = {"jsonrpc": "2.0"} if id_ is None else {"jsonrpc": "2.0", "id": Raw(id_)}
    return msgspec.json.encode({**head, "method": method, **params})


def _with(line: bytes, **changes: Any) -> bytes:
    """Return a message with other members; the rest stays as it came."""
    return msgspec.json.encode({**msgspec.json.decode(line, type=dict[str, Raw]), **changes})


def _refusal(id_: bytes, error: RpcError) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})
