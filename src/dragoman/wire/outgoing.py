"""The outgoing half of a peer: the buffer before its transport, and the calls that wait for a response."""

import asyncio
import logging
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ConnectionClosedError, InvalidResultError, MessageTooLongError, RemoteError, RpcError
from dragoman.text import one_line
from dragoman.wire.framing import MAX_LINE_BYTES
from dragoman.wire.message import Message, encode_with_surrogates, error_object, parse_error
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

FLUSH_BYTES = 64 * 1024
"""The size of a pipe's buffer. Writing more at once would not deliver it sooner."""

_MAX_METHODS = 256
"""The number of methods that are remembered. A relay passes on methods that its peers invent."""

_log = logging.getLogger("dragoman.wire")
_encode = msgspec.json.Encoder().encode


class _Methods(dict[str, bytes]):
    """The part of a request between its ID and its params, by method."""

    def __missing__(self, method: str) -> bytes:
        part = b',"method":%b,"params":' % _encode(method)
        if len(self) < _MAX_METHODS:
            self[method] = part
        return part


_METHODS = _Methods()


class SendBuffer:
    """Encodes messages into one buffer, which is written to the transport once per tick of the event loop."""

    def __init__(self, transport: Transport, encoder: msgspec.json.Encoder) -> None:
        self.lines = bytearray()
        """Lines that were not yet passed to the transport."""
        self.is_congested = False
        """Whether senders must wait because the other side does not keep up."""
        self._transport = transport
        self._encoder = encoder
        self._encode_into = encoder.encode_into
        self._is_flush_scheduled = False

    def start(self) -> None:
        """Prepare to send on the running event loop."""
        self._call_soon = asyncio.get_running_loop().call_soon

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes that the other side has not received."""
        return self._transport.unsent_bytes + len(self.lines)

    @property
    def must_wait(self) -> bool:
        """Whether a sender must await `flow`."""
        return self.is_congested or len(self.lines) >= FLUSH_BYTES

    def put(self, head: bytes, body: Any, tail: bytes = b"}\n") -> None:
        """Append one line. If the body cannot be encoded or is too long (MessageTooLongError), append nothing."""
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
        size = len(lines) - mark
        if size > MAX_LINE_BYTES:
            del lines[mark:]
            raise MessageTooLongError(size, MAX_LINE_BYTES)
        if not self._is_flush_scheduled:
            self._is_flush_scheduled = True
            self._call_soon(self.flush)

    def put_error(self, request_id: bytes, error: RpcError) -> None:
        """Append an error response. Omit details that cannot be encoded."""
        head = b'{"jsonrpc":"2.0","id":%b,"error":' % request_id
        try:
            self.put(head, error_object(error))
        except (TypeError, ValueError, NotImplementedError, RecursionError, MessageTooLongError) as problem:
            _log.error("the details of an error could not be encoded: %s", type(problem).__name__)
            self.put(head, error_object(RpcError(error.code)))

    def put_lines(self, lines: bytes | memoryview) -> None:
        """Append whole lines that were encoded elsewhere. Write a large block at once, without a copy."""
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
        """Write all buffered lines to the transport now."""
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
    """The calls that wait for a response, by request ID."""

    def __init__(self) -> None:
        self._last_id = 0
        self._calls: dict[bytes, tuple[str, asyncio.Future[Raw]]] = {}

    def begin(self, method: str) -> tuple[bytes, asyncio.Future[Raw], bytes]:
        """Return the ID of a new call, the future of its result, and the beginning of its line up to the params."""
        self._last_id += 1
        request_id = b"%d" % self._last_id
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._calls[request_id] = (method, future)
        return request_id, future, b'{"jsonrpc":"2.0","id":%b%b' % (request_id, _METHODS[method])

    def end(self, request_id: bytes) -> None:
        """Remove a call that was answered or whose caller stopped waiting."""
        future = self._calls.pop(request_id)[1]
        if future.done() and not future.cancelled():
            future.exception()  # mark it as retrieved: the wait may have been cancelled before the error was raised

    def answer(self, request_id: bytes, message: Message) -> None:
        """Complete the call that a response answers."""
        method, future = self._calls.get(request_id, (None, None))
        if method is None and request_id.startswith(b'"'):
            problem = f"it has the id {one_line(request_id.decode(), 40)}, a string, but the request has a number"
            self.refuse(request_id.strip(b'"'), problem, or_only_call=False)
        elif method is None or future is None or future.done():
            _log.debug("a response without a matching request was ignored")
        elif message.error is not UNSET:
            error = parse_error(message.error)
            future.set_exception(
                RemoteError(method, error.code, error.message, None if error.data is UNSET else error.data)
            )
        elif message.result is not UNSET:
            future.set_result(message.result)

    def refuse(self, request_id: bytes, problem: str, *, or_only_call: bool) -> None:
        """Fail the call that a malformed response answers. With `or_only_call`, fall back to a single open call."""
        method, future = self._calls.get(request_id, (None, None))
        if future is None and or_only_call and len(self._calls) == 1:
            [(method, future)] = self._calls.values()
        if method is not None and future is not None and not future.done():
            future.set_exception(InvalidResultError(method, problem))

    def fail(self, reason: ConnectionClosedError) -> None:
        """Fail every open call, because no response will arrive."""
        for _, future in self._calls.values():
            if not future.done():
                future.set_exception(reason)
