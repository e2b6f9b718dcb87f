"""One side of a JSON-RPC conversation: it calls, notifies, answers, cancels and ends.

Order. Lines are taken in the order in which they came. A notification is handled at once when its
handler is a plain function; when it is a coroutine the lines behind it wait in a backlog until it is
done. So notifications are handled one after the other, a response is never delivered before the
notifications that came ahead of it were handled, and a request begins after those ahead of
it and before those behind it; requests then run side by side, each in its own task.

A notification handler that awaits a call on its own connection would wait for an answer that waits in
the backlog behind it: such a call raises `WouldDeadlock`. The notification that comes most goes a shorter way
(see `handler`), in the same order.

Bounds. Sending waits while the other side does not take what was sent (`HIGH_WATER_BYTES`). A backlog of
more than `MAX_BACKLOG_BYTES` stops reading, and so does a peer that provokes refusals faster than it
reads them. More than `MAX_IN_FLIGHT` requests at a time are refused.

End. When the input ends, calls that are still waiting fail with the reason at once, for no answer can
come; handlers that are running get `END_GRACE_S` to finish and answer (as long as they like when the input
was a file), because whoever closed the input may still read.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import (
    ConnectionClosed,
    DragomanError,
    ErrorCode,
    InvalidResult,
    RemoteError,
    RpcError,
    WouldDeadlock,
)
from dragoman.wire.framing import Oversized
from dragoman.wire.handler import HEADS, NO_SHORTCUT, Handler, IncomingRequest, Shortcut
from dragoman.wire.message import (
    BAD_JSON,
    NO_PARAMS,
    NULL_ID,
    SURELY_SHALLOW_BYTES,
    Malformed,
    Message,
    error_object,
    is_sound,
    parse,
    parse_error,
    replace_lone_surrogates,
)
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

MAX_IN_FLIGHT = 1024
"""Requests of the other side that may run at a time: far more than any editor sends, far fewer than hurt."""

MAX_BACKLOG_BYTES = 1024 * 1024
"""Lines waiting behind a slow notification handler before reading stops."""

END_GRACE_S = 1.0
"""How long running handlers may go on after the input ended: enough to answer what was piped in."""

MAX_WARNINGS = 5
"""Malformed messages that are warned of one by one: a program that is no peer prints thousands a second."""

CRASHED = "something went wrong inside; the log on stderr has the details"
"""What is told of a handler that failed by its own fault."""

CANCEL_REQUEST = "$/cancel_request"

_FLUSH_BYTES = 64 * 1024
"""A pipe full: writing more in one go would not get it there sooner."""

_CLOSING_BRACE = ord("}")

_log = logging.getLogger("dragoman.wire")
_PLAIN_ENCODER = msgspec.json.Encoder()


class _CancelParams(msgspec.Struct, rename="camel"):
    request_id: Raw


class Peer:
    """One side of a conversation; use it as an async context manager, which ends everything it started.

    Malformed lines are refused in words. One that is not strict bears with them, for MCP servers are what they are:
    garbage is passed over, and a line that is too long ends the only call it can belong to.
    """

    def __init__(
        self,
        transport: Transport,
        handler: Handler,
        *,
        encoder: msgspec.json.Encoder = _PLAIN_ENCODER,
        find_shortcut: Callable[[str], Shortcut | None] | None = None,
        cancel_method: str = CANCEL_REQUEST,
        strict: bool = True,
    ) -> None:
        self._transport = transport
        self._encode_into = encoder.encode_into
        self._handler = handler
        self._find_shortcut = find_shortcut
        self._cancel_method = cancel_method
        self._strict = strict
        self._shortcut = NO_SHORTCUT
        self._tasks = asyncio.TaskGroup()
        self._out = bytearray()
        self._flush_scheduled = False
        self._congested = False
        self._last_id = 0
        self._calls: dict[bytes, tuple[str, asyncio.Future[Raw]]] = {}
        self._in_flight: set[IncomingRequest] = set()
        self._by_id: dict[bytes, IncomingRequest] = {}
        self._unbegun = 0
        self._refused = 0
        self._backlog: deque[bytes | Oversized] = deque()
        self._backlog_bytes = 0
        self._dispatcher: asyncio.Task[None] | None = None
        self._waiting: Awaitable[None] | None = None
        self._backlog_full = False
        self._outbox_full = False
        self._input_ended = asyncio.Event()
        self._input_was_file = False
        self._end: ConnectionClosed | None = None
        self._end_known = asyncio.Event()
        self._closing = False

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        await self._tasks.__aenter__()
        self._transport.start(self, self._tasks)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._begin_end(ConnectionClosed("the connection was closed here"))
        self._closing = True
        for request in list(self._in_flight):
            if request.task is not None:
                request.task.cancel()
        if self._dispatcher is not None:
            self._dispatcher.cancel()
        if asyncio.iscoroutine(self._waiting):
            self._waiting.close()  # the dispatcher is cancelled before it could await it
        self._flush()
        try:
            await self._transport.close()
        finally:
            # Without the error, so that whoever uses the connection meets it as itself and not in a group.
            await self._tasks.__aexit__(None, None, None)

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    async def call(self, method: str, params: Any = NO_PARAMS, *, cancellable: bool = True) -> Raw:
        """Send a request and wait for its result, undecoded; cancelling the wait cancels the request, if it may be.

        Raises RemoteError when the answer is an error, InvalidResult when it is no answer at all,
        ConnectionClosed when none will come and WouldDeadlock inside a notification handler.
        """
        if self._dispatcher is not None and self._dispatcher is asyncio.current_task():
            raise WouldDeadlock(method)
        if self._end is not None:
            raise self._end.with_traceback(None)
        self._last_id += 1
        request_id = b"%d" % self._last_id
        future: asyncio.Future[Raw] = self._loop.create_future()
        head = b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":' % (request_id, _PLAIN_ENCODER.encode(method))
        self._put(head, params)
        self._calls[request_id] = (method, future)
        try:
            await self.flow()
            return await future
        except asyncio.CancelledError:
            if self._end is None and cancellable:
                self._put(HEADS[self._cancel_method], {"requestId": Raw(request_id)})
            raise
        finally:
            self._calls.pop(request_id, None)
            if future.done() and not future.cancelled():
                future.exception()  # seen: the wait may have been cancelled before it was met

    async def notify(self, method: str, params: Any = NO_PARAMS) -> None:
        """Send a notification; waits only while the other side does not keep up.

        Raises ConnectionClosed when the other side no longer reads.
        """
        if not self._transport.can_write:
            raise self._cannot_write()
        self._put(HEADS[method], params)
        if self._congested or len(self._out) >= _FLUSH_BYTES:
            await self.flow()

    def write(self, lines: bytes) -> None:
        """Send whole lines that were made elsewhere; `flow` tells when to wait. Raises ConnectionClosed."""
        if not self._transport.can_write:
            raise self._cannot_write()
        self._out += lines
        self._flush_soon()

    def _cannot_write(self) -> ConnectionClosed:
        return (self._end or ConnectionClosed("the other side no longer reads")).with_traceback(None)

    def _put(self, head: bytes, body: Any, tail: bytes = b"}\n") -> None:
        out = self._out
        mark = len(out)
        out += head
        try:
            self._encode_into(body, out, -1)
        except BaseException:
            del out[mark:]
            raise
        out += tail
        if not self._flush_scheduled:
            self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flush_scheduled:
            self._flush_scheduled = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flush_scheduled = False
        if self._out:
            out, self._out = self._out, bytearray()
            self._transport.write(out)
            self._congested = self._transport.unsent_bytes > HIGH_WATER_BYTES

    async def flow(self) -> None:
        """Wait while the other side does not keep up."""
        if len(self._out) >= _FLUSH_BYTES:
            self._flush()
        if self._congested:
            await self._transport.drained()
            self._congested = False

    def _put_error(self, request_id: bytes, error: RpcError) -> None:
        head = b'{"jsonrpc":"2.0","id":%b,"error":' % request_id
        try:
            self._put(head, error_object(error))
        except (TypeError, ValueError, NotImplementedError, RecursionError) as problem:
            _log.error("the details of an error could not be encoded: %s", type(problem).__name__)
            self._put(head, error_object(RpcError(error.code)))

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the next lines, from the transport."""
        if self._closing:
            return
        if self._dispatcher is not None:
            self._queue(lines)
            return
        head, decode, handle = self._shortcut
        start = len(head)
        for position, line in enumerate(lines):
            # The shortcut stands here in full because each call would cost a tenth of the whole.
            if (
                type(line) is bytes
                and line.startswith(head)
                and line[-1] == _CLOSING_BRACE
                and not self._unbegun
                and ((len(line) <= SURELY_SHALLOW_BYTES and line.isascii()) or is_sound(line))
            ):
                try:
                    params = decode(line[start:-1])
                except BAD_JSON:
                    waiting = self._take(line)
                else:
                    try:
                        waiting = handle(params)
                    except (Exception, asyncio.CancelledError):  # noqa: BLE001 -- boundary: handler dispatch
                        _log.exception("a notification handler failed")
                        continue
            else:
                waiting = self._take(line)
            if waiting is not None:
                self._waiting = waiting
                self._dispatcher = self._tasks.create_task(self._dispatch())
                self._queue(lines[position + 1 :])
                return

    def input_ended(self, *, was_file: bool) -> None:
        """Take note that the transport has no more lines."""
        self._input_was_file = was_file
        self._input_ended.set()
        if self._dispatcher is None and not self._closing:
            self._tasks.create_task(self._end_calls())

    async def wait_ended(self) -> None:
        """Wait until the other side said its last and what it asked for was answered, within bounds."""
        await self._input_ended.wait()
        try:
            async with asyncio.timeout(None if self._input_was_file else END_GRACE_S):
                await self._end_known.wait()
                while running := self._running():
                    await asyncio.wait(running)
        except TimeoutError:
            _log.info("%d requests were still running when the other side had gone", len(self._in_flight))

    def _running(self) -> list[asyncio.Task[None]]:
        tasks = [self._dispatcher, *(request.task for request in self._in_flight)]
        return [task for task in tasks if task is not None]

    def _queue(self, lines: Sequence[bytes | Oversized]) -> None:
        self._backlog.extend(lines)
        self._backlog_bytes += sum(len(line) for line in lines if isinstance(line, bytes))
        if self._backlog_bytes > MAX_BACKLOG_BYTES:
            self._backlog_full = True
            self._transport.pause_reading()

    async def _dispatch(self) -> None:
        """Wait for an asynchronous notification handler, then take the lines that came meanwhile."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            await self._finish_notification(waiting)
        while self._backlog:
            line = self._backlog.popleft()
            if isinstance(line, bytes):
                self._backlog_bytes -= len(line)
            if self._backlog_full and self._backlog_bytes < MAX_BACKLOG_BYTES // 2:
                self._backlog_full = False
                self._read_on()
            more = self._take(line)
            if more is not None:
                await self._finish_notification(more)
        self._dispatcher = None
        if self._input_ended.is_set():
            await self._end_calls()

    def _take(self, line: bytes | Oversized) -> Awaitable[None] | None:
        message = parse(line)
        if isinstance(message, Malformed) and isinstance(line, bytes) and (mended := replace_lone_surrogates(line)):
            message = parse(mended)
        if isinstance(message, Malformed):
            self._refuse(message, is_oversized=isinstance(line, Oversized))
        elif message.id is not UNSET:
            if message.method is None:
                self._take_response(message, bytes(message.id))
            else:
                self._take_request(message.method, message.params, bytes(message.id))
        elif message.method is None:
            return None
        elif message.method == self._cancel_method:
            self._take_cancel(message.params)
        elif self._unbegun:
            return self._take_notification_later(message.method, message.params)
        else:
            if self._find_shortcut is not None:
                self._shortcut = self._find_shortcut(message.method) or NO_SHORTCUT
            return self._take_notification(message.method, message.params)
        return None

    def _take_notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        try:
            return self._handler.notification(method, params)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("the handler of %s failed", method)
            return None

    async def _take_notification_later(self, method: str, params: Raw) -> None:
        """Let the requests that came before begin first: a cancel right behind its prompt must find it."""
        await asyncio.sleep(0)
        waiting = self._take_notification(method, params)
        if waiting is not None:
            await waiting

    async def _finish_notification(self, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except asyncio.CancelledError:
            if self._closing:
                raise
            _log.warning("a notification handler was cancelled")
        except Exception:  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("a notification handler failed")

    def _take_response(self, message: Message, request_id: bytes) -> None:
        method, future = self._calls.get(request_id, (None, None))
        if method is None or future is None or future.done():
            _log.debug("an answer to no call of ours was ignored")
        elif message.error is not UNSET:
            error = parse_error(message.error)
            future.set_exception(
                RemoteError(method, error.code, error.message, None if error.data is UNSET else error.data)
            )
        elif message.result is not UNSET:
            future.set_result(message.result)

    def _refuse(self, malformed: Malformed, *, is_oversized: bool) -> None:
        method, future = self._calls.get(malformed.id, (None, None))
        if future is None and is_oversized and len(self._calls) == 1 and not self._strict:
            [(method, future)] = self._calls.values()  # what else would be so long
        if malformed.answerable and self._strict:
            self._put_error(malformed.id, RpcError(malformed.code, malformed.problem))
            self._hold_back()
        elif method is not None and future is not None and not future.done():
            future.set_exception(InvalidResult(method, malformed.problem))
        self._refused += 1
        if self._refused == MAX_WARNINGS + 1:
            _log.warning("more malformed messages follow; from here they are logged for debugging only")
        level = logging.WARNING if self._refused <= MAX_WARNINGS else logging.DEBUG
        _log.log(level, "a malformed message was refused: %s", malformed.problem)

    def _take_cancel(self, params: Raw) -> None:
        try:
            request_id = bytes(msgspec.json.decode(params, type=_CancelParams).request_id)
        except (msgspec.DecodeError, RecursionError):
            _log.warning("a %s without a requestId was ignored", self._cancel_method)
            return
        request = self._by_id.get(request_id)
        if request is not None:
            # On the next tick: a request that came in the same read has not begun yet, and a task that is
            # cancelled before it begins could not answer.
            self._loop.call_soon(self._cancel, request)

    def _cancel(self, request: IncomingRequest) -> None:
        if request in self._in_flight:
            request.cancel()

    def _take_request(self, method: str, params: Raw, request_id: bytes) -> None:
        if len(self._in_flight) >= MAX_IN_FLIGHT:
            problem = f"{MAX_IN_FLIGHT} requests are in flight already; wait for answers before sending more"
            self._put_error(request_id, RpcError(ErrorCode.INVALID_REQUEST, problem))
            self._hold_back()
            return
        if request_id in self._by_id and request_id != NULL_ID:
            problem = f"id {request_id.decode()} belongs to a request that is still running; use a new one"
            self._put_error(request_id, RpcError(ErrorCode.INVALID_REQUEST, problem))
            self._hold_back()
            return
        request = IncomingRequest(method, params, request_id)
        self._in_flight.add(request)
        self._by_id[request_id] = request
        self._unbegun += 1
        request.task = self._tasks.create_task(self._answer(request))

    async def _answer(self, request: IncomingRequest) -> None:
        self._unbegun -= 1
        try:
            result = await self._handler.request(request)
            self._put(b'{"jsonrpc":"2.0","id":%b,"result":' % request.id, result)
        except RpcError as error:
            self._put_error(request.id, error)
        except asyncio.CancelledError:
            if self._closing:
                raise
            self._put_error(request.id, RpcError(ErrorCode.REQUEST_CANCELLED))
        except DragomanError as error:
            _log.warning("%s failed: %s", request.method, error)
            self._put_error(request.id, RpcError(ErrorCode.INTERNAL_ERROR, str(error)))
        except Exception:  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("the handler of %s failed", request.method)
            self._put_error(request.id, RpcError(ErrorCode.INTERNAL_ERROR, CRASHED))
        try:
            await self.flow()
        finally:
            self._in_flight.discard(request)
            if self._by_id.get(request.id) is request:
                del self._by_id[request.id]

    def _hold_back(self) -> None:
        """Stop reading from a peer that provokes refusals and does not read them."""
        if self._transport.unsent_bytes + len(self._out) > HIGH_WATER_BYTES and not self._outbox_full:
            self._outbox_full = True
            self._transport.pause_reading()
            self._tasks.create_task(self._read_on_when_drained())

    async def _read_on_when_drained(self) -> None:
        self._flush()
        await self._transport.drained()
        self._outbox_full = False
        self._read_on()

    def _read_on(self) -> None:
        if not self._backlog_full and not self._outbox_full:
            self._transport.resume_reading()

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    async def _end_calls(self) -> None:
        self._begin_end(await self._transport.explain_end())

    def _begin_end(self, end: ConnectionClosed) -> None:
        if self._end is None:
            self._end = end
            self._end_known.set()
        for _, future in self._calls.values():
            if not future.done():
                future.set_exception(self._end)
