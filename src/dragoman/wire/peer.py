"""One side of a JSON-RPC conversation. It calls, notifies, answers, cancels and ends.

Order. Lines are handled in the order in which they arrive. If the handler of a notification is a plain function, it
runs at once. If it is a coroutine, the lines after it wait in a backlog until it is done. So notifications are handled
one after another, and a response is never delivered before the notifications that precede it. A request starts after
the lines before it and before the lines after it. Requests then run concurrently, each in its own task.

A notification handler must not await a call on its own connection. The response would wait in the backlog for the
handler itself, so such a call raises `DeadlockError`. The most frequent notification takes a shortcut (see `handler`)
that keeps the order.

Bounds. Sending waits while the other side does not read (`HIGH_WATER_BYTES`). Reading stops while the backlog exceeds
`MAX_BACKLOG_BYTES`, and while the other side provokes refusals faster than it reads them. More than `MAX_IN_FLIGHT`
concurrent requests are refused.

End. `end` describes the states. When the input ends, open calls fail at once with the reason. Running handlers get
`END_GRACE_S` to finish and answer, or unlimited time if the input was a file.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Self

import msgspec
from msgspec import UNSET, Raw

from dragoman.errors import ConnectionClosedError, DeadlockError, DragomanError, ErrorCode, RpcError
from dragoman.wire.end import ConnectionEnd, EndState
from dragoman.wire.framing import Oversized
from dragoman.wire.handler import HEADS, NO_SHORTCUT, Handler, IncomingRequest, Shortcut
from dragoman.wire.incoming import LineBacklog, RunningRequests
from dragoman.wire.message import (
    BAD_JSON,
    NO_PARAMS,
    SURELY_SHALLOW_BYTES,
    Malformed,
    is_sound,
    parse,
    replace_lone_surrogates,
)
from dragoman.wire.outgoing import FLUSH_BYTES, OpenCalls, SendBuffer
from dragoman.wire.transport import HIGH_WATER_BYTES, Transport

END_GRACE_S = 1.0
"""How long running handlers may continue after the input ended. This is enough to answer piped requests."""

MAX_WARNINGS = 5
"""Malformed messages that are logged as warnings. A program that is not a peer may print thousands per second."""

CRASHED = "an internal error occurred; see the log on stderr"
"""The answer to a request whose handler failed unexpectedly."""

CANCEL_REQUEST = "$/cancel_request"

_CLOSED = EndState.CLOSED
_CLOSING_BRACE = ord("}")

_log = logging.getLogger("dragoman.wire")
_PLAIN_ENCODER = msgspec.json.Encoder()


class _CancelParams(msgspec.Struct, rename="camel"):
    request_id: Raw


class Peer:
    """One side of a conversation. Use it as an async context manager, which ends everything that it started.

    A malformed line is answered with an error that names the mistake. A peer that is not strict, such as the one for
    MCP servers, skips malformed lines. A line that is too long fails the only call that it can belong to.
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
        self._sending = SendBuffer(transport, encoder)
        self._handler = handler
        self._find_shortcut = find_shortcut
        self._shortcut = NO_SHORTCUT
        self._cancel_method = cancel_method
        self._malformed = _MalformedLines(strict=strict)
        self._tasks = asyncio.TaskGroup()
        self._calls = OpenCalls()
        self._requests = RunningRequests()
        self._backlog = LineBacklog(transport)
        self._end = ConnectionEnd()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._sending.start()
        self._transport.start(self, self._tasks)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self._calls.fail(self._end.close(ConnectionClosedError("this side closed the connection")))
        for task in self._requests.tasks:
            task.cancel()
        self._backlog.close()
        self._sending.flush()
        try:
            await self._transport.close()
        finally:
            # Without the error, so that the caller receives the original exception and not an exception group.
            await self._tasks.__aexit__(None, None, None)

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    async def call(self, method: str, params: Any = NO_PARAMS, *, cancellable: bool = True) -> Raw:
        """Send a request and wait for its undecoded result. Cancelling the wait cancels a `cancellable` request.

        Raises RemoteError if the response is an error, InvalidResultError if it is malformed, and ConnectionClosedError
        if none will arrive. Also raises MessageTooLongError, and DeadlockError inside a notification handler.
        """
        dispatcher = self._backlog.dispatcher
        if dispatcher is not None and dispatcher is asyncio.current_task():
            raise DeadlockError(method)
        if self._end.reason is not None:
            raise self._end.reason.with_traceback(None)
        sending = self._sending
        request_id, result, head = self._calls.begin(method)
        try:
            sending.put(head, params)
            if sending.must_wait:
                await sending.flow()
            return await result
        except asyncio.CancelledError:
            if self._end.reason is None and cancellable:
                sending.put(HEADS[self._cancel_method], {"requestId": Raw(request_id)})
            raise
        finally:
            self._calls.end(request_id)

    async def notify(self, method: str, params: Any = NO_PARAMS) -> None:
        """Send a notification. Wait only while the other side does not keep up.

        Raises ConnectionClosedError if the other side no longer reads, and MessageTooLongError.
        """
        if not self._transport.can_write:
            raise self._cannot_write()
        sending = self._sending
        sending.put(HEADS[method], params)
        if sending.is_congested or len(sending.lines) >= FLUSH_BYTES:  # as `must_wait`, without the cost of a call
            await sending.flow()

    def write(self, lines: bytes | memoryview) -> None:
        """Send whole lines that were encoded elsewhere. Await `flow` for the limits. Raises ConnectionClosedError."""
        if not self._transport.can_write:
            raise self._cannot_write()
        self._sending.put_lines(lines)

    async def flow(self) -> None:
        """Wait while the other side does not keep up."""
        await self._sending.flow()

    def _cannot_write(self) -> ConnectionClosedError:
        return (self._end.reason or ConnectionClosedError("the other side no longer reads")).with_traceback(None)

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Handle the next lines from the transport."""
        if self._end.state is _CLOSED:
            return
        if self._backlog.dispatcher is not None:
            self._backlog.add(lines)
            return
        requests = self._requests
        head, decode, handle = self._shortcut
        start = len(head)
        for position, line in enumerate(lines):
            # The shortcut is inlined because each function call would cost a tenth of the total time.
            if (
                type(line) is bytes
                and line.startswith(head)
                and line[-1] == _CLOSING_BRACE
                and not requests.unstarted
                and ((len(line) <= SURELY_SHALLOW_BYTES and line.isascii()) or is_sound(line))
            ):
                try:
                    params = decode(line[start:-1])
                except BAD_JSON:
                    waiting = self._receive(line)
                else:
                    try:
                        waiting = handle(params)
                    except (Exception, asyncio.CancelledError):  # noqa: BLE001 -- boundary: handler dispatch
                        _log.exception("a notification handler failed")
                        continue
            else:
                waiting = self._receive(line)
            if waiting is not None:
                self._backlog.awaited = waiting
                self._backlog.dispatcher = self._tasks.create_task(self._dispatch())
                self._backlog.add(lines[position + 1 :])
                return

    def input_ended(self, *, was_file: bool) -> None:
        """Record that the transport has no more lines."""
        self._end.end_input(was_file=was_file)
        if self._backlog.dispatcher is None and self._end.state is not _CLOSED:
            self._tasks.create_task(self._end_calls())

    async def wait_ended(self) -> None:
        """Wait until the other side has ended its input and all its requests are answered, within bounds."""
        await self._end.wait_input_ended()
        try:
            async with asyncio.timeout(None if self._end.input_was_file else END_GRACE_S):
                await self._end.wait_ended()
                while running := self._running():
                    await asyncio.wait(running)
        except TimeoutError:
            _log.info("%d requests were still running when the connection ended", len(self._requests))

    def _running(self) -> list[asyncio.Task[None]]:
        dispatcher = self._backlog.dispatcher
        return self._requests.tasks if dispatcher is None else [dispatcher, *self._requests.tasks]

    async def _dispatch(self) -> None:
        """Wait for an asynchronous notification handler, then handle the lines that arrived during the wait."""
        backlog = self._backlog
        waiting, backlog.awaited = backlog.awaited, None
        if waiting is not None:
            await self._finish_notification(waiting)
        while backlog:
            more = self._receive(backlog.pop())
            if more is not None:
                await self._finish_notification(more)
        backlog.dispatcher = None
        if self._end.has_input_ended:
            await self._end_calls()

    async def _end_calls(self) -> None:
        self._calls.fail(self._end.end(await self._transport.explain_end()))

    def _receive(self, line: bytes | Oversized) -> Awaitable[None] | None:
        # A response or cancel is handled at once, and a request gets a task. Only a notification handler may return an
        # awaitable, which makes the caller queue the lines after it.
        message = parse(line)
        if isinstance(message, Malformed) and isinstance(line, bytes) and (mended := replace_lone_surrogates(line)):
            message = parse(mended)
        if isinstance(message, Malformed):
            self._refuse(message, is_oversized=isinstance(line, Oversized))
        elif message.id is not UNSET:
            if message.method is None:
                self._calls.answer(bytes(message.id), message)
            else:
                self._start_request(message.method, message.params, bytes(message.id))
        elif message.method is None:
            return None
        elif message.method == self._cancel_method:
            self._handle_cancel(message.params)
        elif self._requests.unstarted:
            return self._handle_notification_later(message.method, message.params)
        else:
            if self._find_shortcut is not None:
                self._shortcut = self._find_shortcut(message.method) or NO_SHORTCUT
            return self._handle_notification(message.method, message.params)
        return None

    def _handle_notification(self, method: str, params: Raw) -> Awaitable[None] | None:
        try:
            return self._handler.notification(method, params)
        except (Exception, asyncio.CancelledError):  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("the handler of %s failed", method)
            return None

    async def _handle_notification_later(self, method: str, params: Raw) -> None:
        """Handle a notification after the earlier requests have started, so that a cancel finds its prompt."""
        await asyncio.sleep(0)
        waiting = self._handle_notification(method, params)
        if waiting is not None:
            await waiting

    async def _finish_notification(self, waiting: Awaitable[None]) -> None:
        try:
            await waiting
        except asyncio.CancelledError:
            if self._end.state is _CLOSED:
                raise
            _log.warning("a notification handler was cancelled")
        except Exception:  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("a notification handler failed")

    def _refuse(self, malformed: Malformed, *, is_oversized: bool) -> None:
        is_strict = self._malformed.is_strict
        if malformed.answerable and is_strict:
            self._refuse_request(malformed.id, RpcError(malformed.code, malformed.problem))
        else:
            # Only the response to a call can be so long.
            self._calls.refuse(malformed.id, malformed.problem, or_only_call=is_oversized and not is_strict)
        for request_id in malformed.answered_ids:
            self._calls.refuse(request_id, malformed.problem, or_only_call=False)
        self._malformed.log(malformed.problem)

    def _handle_cancel(self, params: Raw) -> None:
        try:
            request_id = bytes(msgspec.json.decode(params, type=_CancelParams).request_id)
        except (msgspec.DecodeError, RecursionError):
            _log.warning("a %s without a requestId was ignored", self._cancel_method)
            return
        request = self._requests.find(request_id)
        if request is not None:
            # Cancel on the next tick. A request that arrived in the same read has not started yet, and a task that is
            # cancelled before it starts cannot answer.
            asyncio.get_running_loop().call_soon(self._cancel, request)

    def _cancel(self, request: IncomingRequest) -> None:
        if request in self._requests:
            request.cancel()

    def _start_request(self, method: str, params: Raw, request_id: bytes) -> None:
        request = IncomingRequest(method, params, request_id)
        problem = self._requests.add(request)
        if problem is None:
            request.task = self._tasks.create_task(self._answer(request))
        else:
            self._refuse_request(request_id, RpcError(ErrorCode.INVALID_REQUEST, problem))

    async def _answer(self, request: IncomingRequest) -> None:
        self._requests.unstarted -= 1
        try:
            result = await self._handler.request(request)
            self._sending.put(b'{"jsonrpc":"2.0","id":%b,"result":' % request.id, result)
        except RpcError as error:
            self._sending.put_error(request.id, error)
        except asyncio.CancelledError:
            if self._end.state is _CLOSED:
                raise
            self._sending.put_error(request.id, RpcError(ErrorCode.REQUEST_CANCELLED))
        except DragomanError as error:
            _log.warning("%s failed: %s", request.method, error)
            self._sending.put_error(request.id, RpcError(ErrorCode.INTERNAL_ERROR, str(error)))
        except Exception:  # noqa: BLE001 -- boundary: handler dispatch
            _log.exception("the handler of %s failed", request.method)
            self._sending.put_error(request.id, RpcError(ErrorCode.INTERNAL_ERROR, CRASHED))
        try:
            if self._sending.must_wait:
                await self._sending.flow()
        finally:
            self._requests.remove(request)

    def _refuse_request(self, request_id: bytes, error: RpcError) -> None:
        """Answer with an error. Stop reading if the other side provokes refusals and does not read them."""
        self._sending.put_error(request_id, error)
        if self._sending.unsent_bytes > HIGH_WATER_BYTES and not self._backlog.is_refusing:
            self._backlog.pause_for_refusals()
            self._tasks.create_task(self._resume_when_drained())

    async def _resume_when_drained(self) -> None:
        self._sending.flush()
        await self._transport.drained()
        self._backlog.resume_after_refusals()


class _MalformedLines:
    """Counts malformed lines and logs the first few as warnings."""

    def __init__(self, *, strict: bool) -> None:
        self.is_strict = strict
        self._count = 0

    def log(self, problem: str) -> None:
        """Log one malformed line."""
        self._count += 1
        if self._count == MAX_WARNINGS + 1:
            _log.warning("further malformed messages are logged at debug level only")
        level = logging.WARNING if self._count <= MAX_WARNINGS else logging.DEBUG
        _log.log(level, "a malformed message was refused: %s", problem)
