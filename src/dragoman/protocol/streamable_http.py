"""ACP messages over HTTP, as in the ACP proposal: POSTs to the server, event streams from it.

The response to `initialize` contains the id of the connection. The server only acknowledges all other POSTs. Its
messages arrive on event streams: one for the connection and one for each session. A session's stream is opened as soon
as the session is known, that is when a response names it and before a message about it is posted.

**Order.** POSTs are sent one after another, each when the last was acknowledged. Each stream is read in order. There is
no order between streams, but one response needs it: the response to `session/load` must follow the session's updates,
and may arrive on the connection's stream. It is held back until the session's stream has been quiet for `QUIET_S`.

**Failures.** A POST that fails only fails its request, which is answered here in place of the server. The connection
ends when its own stream ends.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ConnectionClosedError, ErrorCode
from dragoman.protocol.address import AddressError, explain_status, is_header
from dragoman.protocol.event_stream import RECONNECT_S, ServerStream
from dragoman.protocol.http_link import HttpLink, LinkError, PostResponse
from dragoman.wire.message import BAD_JSON, ErrorObject, Malformed, Message, parse
from dragoman.wire.transport import CLOSE_TIMEOUT_S, LineQueue, Receiver

CONNECTION_HEADER = "Acp-Connection-Id"
SESSION_HEADER = "Acp-Session-Id"

INITIALIZE_TIMEOUT_S = 300.0
"""The server may have to start or even download the agent first. Callers have their own, shorter timeouts."""

QUIET_S = 0.15
"""A session's stream is silent for this long after its load. This is several round trips."""

HOLD_LIMIT_S = 30.0
"""The longest time to hold a response back. A session in the middle of a turn is never silent."""

RETRY_DELAY_S = 0.5

OPENING = frozenset(("session/load", "session/resume"))
"""Requests whose response must follow the session's updates, and may arrive on the connection's stream."""

ENDING = frozenset(("session/close", "session/delete"))
"""Requests after which the server sends nothing more about a session."""

_log = logging.getLogger("dragoman.protocol")
_encode = msgspec.json.Encoder().encode


class _OwnRequest(msgspec.Struct, frozen=True):
    """A request from this side that is not answered yet."""

    method: str
    session_id: str | None


class StreamableHttpTransport:
    """Sends each message as one POST, and receives each as one event. It owns its link."""

    def __init__(self, link: HttpLink, owned: AsyncExitStack) -> None:
        self._link = link
        self._owned = owned
        self._queue = LineQueue()
        self._connection_id: str | None = None
        self._connection: ServerStream | None = None
        self._streams = _Streams()
        self._own_tasks: set[asyncio.Task[None]] = set()
        """The task that posts, and the tasks that hold back a response."""
        self._unanswered: dict[bytes, _OwnRequest] = {}
        """Our unanswered requests."""
        self._server_requests: dict[bytes, str] = {}
        """The session of each request from the server. Our response must name it."""
        self._end: ConnectionClosedError | None = None

    @property
    def unsent_bytes(self) -> int:
        return self._queue.unsent_bytes

    @property
    def can_write(self) -> bool:
        return self._end is None

    @property
    def is_paused(self) -> bool:
        """Whether reading is paused."""
        return self._streams.is_paused

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._receiver = receiver
        self._tasks = tasks
        self._begin(self._write())

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if self._end is None:
            self._queue.put(lines)

    async def drained(self) -> None:
        await self._queue.drained()

    def pause_reading(self) -> None:
        self._streams.pause()

    def resume_reading(self) -> None:
        self._streams.resume()

    async def explain_end(self) -> ConnectionClosedError:
        return self._end or ConnectionClosedError("this side closed the connection")

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._queue.drained(below=0)
                if self._connection_id is not None:
                    await self._link.delete(self._headers(None))
        except (TimeoutError, LinkError, AddressError):
            _log.debug("the server did not confirm the end of the connection")
        finally:
            self._set_end(ConnectionClosedError("this side closed the connection"))
            await self._release()

    async def _release(self) -> None:
        tasks = [*self._own_tasks, *self._streams.running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._owned.aclose()

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    async def _write(self) -> None:
        try:
            await self._queue.send_all(self._send)
        except AddressError as end:
            self._fail(end)

    async def _send(self, line: bytes) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            _log.warning("a line that is not a message was not sent: %s", message.problem)
        elif self._connection_id is None:
            await self._initialize(line, message)
        else:
            await self._send_message(line, message)

    async def _initialize(self, line: bytes, message: Message) -> None:
        try:
            reply = await self._link.post(line, {}, INITIALIZE_TIMEOUT_S)
        except LinkError as broken:
            raise self._link.address.fail(broken.problem) from None
        connection_id = reply.headers.get(CONNECTION_HEADER)
        answer = parse(reply.body)
        is_answer = isinstance(answer, Message) and answer.id == message.id
        if reply.status == 200 and is_answer and connection_id and is_header(connection_id):
            self._connection_id = connection_id
            self._connection = self._open(None)
        if is_answer:
            self._deliver(reply.body)
            if isinstance(answer, Message) and answer.error is not UNSET:
                return  # the client may try again with another version
        elif reply.status != 200:
            raise self._link.address.refuse(reply.status, reply.body)
        if self._connection_id is None:
            missing = f"a {CONNECTION_HEADER} header" if is_answer else "the JSON-RPC answer to initialize"
            raise self._link.address.fail(
                f"answered HTTP {reply.status} without {missing}; check that the path is that of an ACP endpoint, "
                "such as /acp",
                status=reply.status,
            )

    async def _send_message(self, line: bytes, message: Message) -> None:
        if self._connection is not None:
            await self._connection.opened.wait()
        if self._end is not None:
            return
        request_id = b"" if message.id is UNSET else bytes(message.id)
        if message.method is None:
            session_id = self._server_requests.pop(request_id, None)
        else:
            session_id = _session_of(message.params)
            if request_id:
                self._unanswered[request_id] = _OwnRequest(message.method, session_id)
        is_request = message.method is not None and bool(request_id)
        try:
            reply = await self._post(line, session_id, is_request=is_request)
        except LinkError as broken:
            self._answer(request_id if is_request else b"", f"{self._link.address.shown} {broken.problem}")
            return
        self._acknowledge(reply, request_id if is_request else b"")

    async def _post(self, line: bytes, session_id: str | None, *, is_request: bool) -> PostResponse:
        if session_id is not None and not is_header(session_id):
            raise LinkError("cannot use a session whose id is not a line of ASCII", was_not_sent=True)
        stream = None if session_id is None else await self._attach(session_id)
        reply = await self._post_with_retries(line, session_id, is_request=is_request)
        if reply.status == 404 and session_id is not None and stream is None:
            # A server that learns of a session only by answering its load refuses the session header as well.
            reply = await self._post_with_retries(line, None, is_request=is_request)
        return reply

    async def _post_with_retries(self, line: bytes, session_id: str | None, *, is_request: bool) -> PostResponse:
        """Post with retries. Do not repeat a request that may have arrived. Raises LinkError."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            try:
                return await self._link.post(line, self._headers(session_id))
            except LinkError as broken:
                if (is_request and not broken.was_not_sent) or clock() - began > RECONNECT_S or self._end is not None:
                    raise
            await asyncio.sleep(RETRY_DELAY_S)

    def _acknowledge(self, reply: PostResponse, request_id: bytes) -> None:
        if not 200 <= reply.status < 300:
            problem = self._link.address.without_secrets(explain_status(reply.status, reply.body))
            self._answer(request_id, f"{self._link.address.shown} {problem}", status=reply.status)
        elif reply.body.strip() and isinstance(parse(reply.body), Message):
            self._receive(reply.body, self._connection)

    def _answer(self, request_id: bytes, problem: str, **data: int) -> None:
        """Answer our request in place of the server. For other messages, log the problem."""
        if not request_id:
            _log.warning("a message was not accepted: %s", problem)
        elif self._unanswered.pop(request_id, None) is not None:
            error = ErrorObject(ErrorCode.INTERNAL_ERROR, problem, data or UNSET)
            self._deliver(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, _encode(error)))

    def _headers(self, session_id: str | None) -> dict[str, str]:
        headers = {CONNECTION_HEADER: self._connection_id or ""}
        return headers if session_id is None else {**headers, SESSION_HEADER: session_id}

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    async def _attach(self, session_id: str) -> ServerStream | None:
        """Return the open stream of a session. Return None if the server has none for it yet."""
        stream = self._streams.of_sessions.get(session_id) or self._open(session_id)
        await stream.opened.wait()
        return stream if stream.end is None else None

    def _open(self, session_id: str | None) -> ServerStream:
        stream = ServerStream(self._link, self._headers(session_id), lambda line: self._receive(line, stream))
        stream.on_gap = lambda: self._fail_unanswered(
            session_id, "lost an event stream; the state of running requests is unknown"
        )
        if session_id is not None:
            self._streams.of_sessions[session_id] = stream
        self._streams.add(stream, self._tasks.create_task(self._run(stream, session_id)))
        return stream

    async def _run(self, stream: ServerStream, session_id: str | None) -> None:
        try:
            await stream.run()
        finally:
            del self._streams.running[stream]
        if session_id is None:
            self._fail(stream.end or ConnectionClosedError("this side closed the connection"))
        elif self._streams.of_sessions.get(session_id) is stream:
            del self._streams.of_sessions[session_id]
            if stream.was_open and stream.end is not None:
                self._fail_unanswered(session_id, stream.end.problem)

    def _receive(self, line: bytes, stream: ServerStream | None) -> None:
        message = parse(line) if b'"id"' in line else None
        if not isinstance(message, Message) or message.id is UNSET:
            self._deliver(line)
        elif message.method is not None:
            session_id = _session_of(message.params)
            if session_id is not None:
                self._server_requests[bytes(message.id)] = session_id
            self._deliver(line)
        else:
            self._receive_response(line, message, stream)

    def _receive_response(self, line: bytes, message: Message, stream: ServerStream | None) -> None:
        """Receive an answer of the server, and open or close the stream of the session that it is about.

        An answer that opens a session must not overtake the session's own stream: it is held until the updates
        before it have arrived there.
        """
        waiting = self._unanswered.pop(bytes(message.id) if message.id is not UNSET else b"", None)
        succeeded = message.result is not UNSET
        if waiting is not None and waiting.session_id is not None and succeeded:
            own = self._streams.of_sessions.get(waiting.session_id)
            if waiting.method in OPENING and own is not stream:
                self._hold(line, waiting.session_id)
                return
            if waiting.method in ENDING and own is not None:
                del self._streams.of_sessions[waiting.session_id]
                own.stop()
                if own is not stream:
                    self._streams.running[own].cancel()
        named = _session_of(message.result)
        if waiting is not None and named is not None and is_header(named) and named not in self._streams.of_sessions:
            self._open(named)
        self._deliver(line)

    def _hold(self, line: bytes, session_id: str) -> None:
        self._begin(self._deliver_when_quiet(line, session_id))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._tasks.create_task(work)
        self._own_tasks.add(task)
        task.add_done_callback(self._own_tasks.discard)

    async def _deliver_when_quiet(self, line: bytes, session_id: str) -> None:
        try:
            async with asyncio.timeout(HOLD_LIMIT_S):
                stream = await self._attach(session_id)
                if stream is not None:
                    await stream.wait_quiet(QUIET_S)
        except TimeoutError:
            _log.debug("a session was never quiet; the response to its load is delivered anyway")
        self._deliver(line)

    def _deliver(self, line: bytes) -> None:
        if self._end is None:
            self._receiver.lines_received([line.replace(b"\n", b" ")])

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    def _fail_unanswered(self, session_id: str | None, problem: str) -> None:
        """Answer the requests that can no longer be answered, because their stream is gone."""
        for request_id, waiting in list(self._unanswered.items()):
            is_here = waiting.session_id == session_id or (session_id is None and waiting.method in OPENING)
            if is_here:
                self._answer(request_id, f"{self._link.address.shown} {problem}")

    def _fail(self, end: ConnectionClosedError) -> None:
        if self._set_end(end):
            self._receiver.input_ended(was_file=False)

    def _set_end(self, end: ConnectionClosedError) -> bool:
        if self._end is not None:
            return False
        self._end = end
        self._queue.close()
        return True


class _Streams:
    """The event streams of one connection, including the connection's own."""

    def __init__(self) -> None:
        self.of_sessions: dict[str, ServerStream] = {}
        self.running: dict[ServerStream, asyncio.Task[None]] = {}
        self.is_paused = False

    def add(self, stream: ServerStream, task: asyncio.Task[None]) -> None:
        """Add a stream and the task that reads it."""
        self.running[stream] = task
        if self.is_paused:
            stream.pause()

    def pause(self) -> None:
        """Stop reading all streams."""
        self.is_paused = True
        for stream in self.running:
            stream.pause()

    def resume(self) -> None:
        """Continue reading."""
        self.is_paused = False
        for stream in self.running:
            stream.resume()


class _Scope(msgspec.Struct, rename="camel"):
    session_id: str | UnsetType | None = UNSET


_decode = msgspec.json.Decoder(_Scope).decode


def _session_of(content: Raw | UnsetType) -> str | None:
    """Return the session named in params or a result, if any."""
    if content is UNSET:
        return None
    try:
        return _decode(content).session_id or None
    except BAD_JSON:
        return None
