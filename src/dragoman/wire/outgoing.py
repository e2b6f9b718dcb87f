"""The outgoing half of a peer: the buffer in front of its transport, and the calls that wait for an answer."""

import asyncio
import logging
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ConnectionClosed, InvalidResult, RemoteError, RpcError
from dragoman.text import one_line
from dragoman.wire.message import Message, encode_with_surrogates, error_object, parse_error
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

FLUSH_BYTES = 64 * 1024
"""A pipe full: writing more in one go would not get it there sooner."""

_MAX_METHODS = 256
"""A relay passes on any method that its peers invent; no more than this is remembered."""

_log = logging.getLogger("dragoman.wire")
_encode = msgspec.json.Encoder().encode


class _Methods(dict[str, bytes]):
    """The part of a request between its id and its params, by method."""

    def __missing__(self, method: str) -> bytes:
        part = b',"method":%b,"params":' % _encode(method)
        if len(self) < _MAX_METHODS:
            self[method] = part
        return part


_METHODS = _Methods()


class SendBuffer:
    """Encodes messages into one buffer, which goes to the transport once a tick of the event loop."""

    def __init__(self, transport: Transport, encoder: msgspec.json.Encoder) -> None:
        self.lines = bytearray()
        """Lines that the transport does not have yet."""
        self.is_congested = False
        """Whether senders have to wait, because the other side does not keep up."""
        self._transport = transport
        self._encoder = encoder
        self._encode_into = encoder.encode_into
        self._is_flush_scheduled = False

    def start(self) -> None:
        """Begin to send, on the event loop that runs now."""
        self._call_soon = asyncio.get_running_loop().call_soon

    @property
    def unsent_bytes(self) -> int:
        """All bytes that the other side has not taken."""
        return self._transport.unsent_bytes + len(self.lines)

    @property
    def must_wait(self) -> bool:
        """Whether a sender has to `flow`."""
        return self.is_congested or len(self.lines) >= FLUSH_BYTES

    def put(self, head: bytes, body: Any, tail: bytes = b"}\n") -> None:
        """Add one line; a body that cannot be encoded leaves no trace."""
        lines = self.lines
        mark = len(lines)
        lines += head
        try:
            self._encode_into(body, lines, -1)
        except UnicodeEncodeError:
            del lines[mark:]
            lines += head + encode_with_surrogates(body, self._encoder)
        except BaseException:
            del lines[mark:]
            raise
        lines += tail
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._call_soon(self.flush)

    def put_error(self, request_id: bytes, error: RpcError) -> None:
        """Add the answer to a request that failed; details that cannot be encoded are left out."""
        head = b'{"jsonrpc":"2.0","id":%b,"error":' % request_id
        try:
            self.put(head, error_object(error))
        except (TypeError, ValueError, NotImplementedError, RecursionError) as problem:
            _log.error("the details of an error could not be encoded: %s", type(problem).__name__)
            self.put(head, error_object(RpcError(error.code)))

    def put_lines(self, lines: bytes | memoryview) -> None:
        """Add whole lines that were made elsewhere; many of them go to the transport at once, without a copy."""
        if len(lines) >= FLUSH_BYTES:
            self.flush()
            self._transport.write(lines)
            self.is_congested = self._transport.unsent_bytes > HIGH_WATER_BYTES
            return
        self.lines += lines
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._call_soon(self.flush)

    def flush(self) -> None:
        """Write all lines to the transport now."""
        self._is_flush_scheduled = False
        if self.lines:
            lines, self.lines = self.lines, bytearray()
            self._transport.write(lines)
            self.is_congested = self._transport.unsent_bytes > HIGH_WATER_BYTES

    async def flow(self) -> None:
        """Wait while the other side does not keep up."""
        if len(self.lines) >= FLUSH_BYTES:
            self.flush()
        if self.is_congested:
            await self._transport.drained()
            self.is_congested = False


class OpenCalls:
    """The calls that wait for an answer, by the ids that they were sent under."""

    def __init__(self) -> None:
        self._last_id = 0
        self._calls: dict[bytes, tuple[str, asyncio.Future[Raw]]] = {}

    def begin(self, method: str) -> tuple[bytes, asyncio.Future[Raw], bytes]:
        """Return the id of a new call, the future of its result, and the beginning of its line up to the params."""
        self._last_id += 1
        request_id = b"%d" % self._last_id
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._calls[request_id] = (method, future)
        return request_id, future, b'{"jsonrpc":"2.0","id":%b%b' % (request_id, _METHODS[method])

    def end(self, request_id: bytes) -> None:
        """Forget a call that was answered, or that its caller waits for no longer."""
        future = self._calls.pop(request_id)[1]
        if future.done() and not future.cancelled():
            future.exception()  # seen: the wait may have been cancelled before it was met

    def answer(self, request_id: bytes, message: Message) -> None:
        """Settle the call that a response answers."""
        method, future = self._calls.get(request_id, (None, None))
        if method is None and request_id.startswith(b'"'):
            problem = f"it has the id {one_line(request_id.decode(), 40)}, a string, where the request has a number"
            self.refuse(request_id.strip(b'"'), problem, or_the_only=False)
        elif method is None or future is None or future.done():
            _log.debug("an answer to no call of ours was ignored")
        elif message.error is not UNSET:
            error = parse_error(message.error)
            future.set_exception(
                RemoteError(method, error.code, error.message, None if error.data is UNSET else error.data)
            )
        elif message.result is not UNSET:
            future.set_result(message.result)

    def refuse(self, request_id: bytes, problem: str, *, or_the_only: bool) -> None:
        """Fail the call that a malformed answer belongs to; `or_the_only` call, when the id names none."""
        method, future = self._calls.get(request_id, (None, None))
        if future is None and or_the_only and len(self._calls) == 1:
            [(method, future)] = self._calls.values()
        if method is not None and future is not None and not future.done():
            future.set_exception(InvalidResult(method, problem))

    def fail(self, reason: ConnectionClosed) -> None:
        """Fail every call that waits: no answer will come."""
        for _, future in self._calls.values():
            if not future.done():
                future.set_exception(reason)
