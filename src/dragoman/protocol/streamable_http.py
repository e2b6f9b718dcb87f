"""Lines over HTTP as the ACP proposal has it: posts one way, event streams the other.

`initialize` is answered in place and brings the id of the connection. Every other message is a post that is only
acknowledged; what comes from the server comes on event streams, one for the connection and one for each session. A
session's is opened as soon as the session is known: when an answer names it, and before anything is posted about it.

Order. Posts go one after the other, each when the last was acknowledged. A stream is read in its order. Between
streams there is none, and one answer needs it: that to `session/load` follows the updates of the session and may
come on the stream of the connection. It is held back until the session's stream has been quiet for `QUIET_S`.

A post that fails is the failure of that request alone, which is answered here in the server's place. The connection
is over when its own stream is.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ConnectionClosed, ErrorCode
from dragoman.protocol.address import AddressFailed, explain_status, is_header
from dragoman.protocol.event_stream import RECONNECT_S, ServerStream
from dragoman.protocol.http_link import HttpLink, LinkBroken, PostResponse
from dragoman.wire.message import BAD_JSON, ErrorObject, Malformed, Message, parse
from dragoman.wire.transport import CLOSE_TIMEOUT_S, LineQueue, Receiver

CONNECTION_HEADER = "Acp-Connection-Id"
SESSION_HEADER = "Acp-Session-Id"

INITIALIZE_TIMEOUT_S = 300.0
"""The agent behind the server may be started, even downloaded first; callers have their own, shorter patience."""

QUIET_S = 0.15
"""A session's stream is silent for this long when its load is done: several round trips."""

HOLD_LIMIT_S = 30.0
"""The longest that an answer is held back: a session in the middle of a turn is never silent."""

RETRY_DELAY_S = 0.5

OPENING = frozenset(("session/load", "session/resume"))
"""Requests whose answer may come on the stream of the connection, although it follows updates of the session."""

ENDING = frozenset(("session/close", "session/delete"))
"""Requests after which the server sends nothing more about a session."""

_log = logging.getLogger("dragoman.protocol")
_encode = msgspec.json.Encoder().encode


class _Waiting(msgspec.Struct, frozen=True):
    """A request of ours that has no answer yet."""

    method: str
    session_id: str | None


class StreamableHttpTransport:
    """Carries each message as one post, or one event; it owns its link from now on."""

    def __init__(self, link: HttpLink, owned: AsyncExitStack) -> None:
        self._link = link
        self._owned = owned
        self._queue = LineQueue()
        self._connection_id: str | None = None
        self._connection: ServerStream | None = None
        self._streams = _Streams()
        self._own_tasks: set[asyncio.Task[None]] = set()
        """The task that posts, and those that hold an answer back."""
        self._waiting: dict[bytes, _Waiting] = {}
        """Our requests without an answer."""
        self._asked: dict[bytes, str] = {}
        """The session of each request of the server: our answer has to name it."""
        self._end: ConnectionClosed | None = None

    @property
    def unsent_bytes(self) -> int:
        return self._queue.unsent_bytes

    @property
    def can_write(self) -> bool:
        return self._end is None

    @property
    def is_paused(self) -> bool:
        """Whether reading has stopped."""
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

    async def explain_end(self) -> ConnectionClosed:
        return self._end or ConnectionClosed("the connection was closed here")

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._queue.drained(below=0)
                if self._connection_id is not None:
                    await self._link.delete(self._headers(None))
        except (TimeoutError, LinkBroken, AddressFailed):
            _log.debug("the server did not take leave")
        finally:
            self._give_up(ConnectionClosed("the connection was closed here"))
            await self._let_go()

    async def _let_go(self) -> None:
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
        except AddressFailed as end:
            self._fail(end)

    async def _send(self, line: bytes) -> None:
        message = parse(line)
        if isinstance(message, Malformed):
            _log.warning("a line that is no message was not sent: %s", message.problem)
        elif self._connection_id is None:
            await self._initialize(line, message)
        else:
            await self._send_message(line, message)

    async def _initialize(self, line: bytes, message: Message) -> None:
        try:
            reply = await self._link.post(line, {}, INITIALIZE_TIMEOUT_S)
        except LinkBroken as broken:
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
                return  # the client may ask again, for another version
        elif reply.status != 200:
            raise self._link.address.refuse(reply.status, reply.body)
        if self._connection_id is None:
            missing = f"a {CONNECTION_HEADER} header" if is_answer else "the JSON-RPC answer to initialize"
            raise self._link.address.fail(
                f"answered HTTP {reply.status} without {missing}; see that the path is that of an ACP endpoint, "
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
            session_id = self._asked.pop(request_id, None)
        else:
            session_id = _session_of(message.params)
            if request_id:
                self._waiting[request_id] = _Waiting(message.method, session_id)
        is_request = message.method is not None and bool(request_id)
        try:
            reply = await self._post(line, session_id, is_request=is_request)
        except LinkBroken as broken:
            self._answer(request_id if is_request else b"", f"{self._link.address.shown} {broken.problem}")
            return
        self._acknowledge(reply, request_id if is_request else b"")

    async def _post(self, line: bytes, session_id: str | None, *, is_request: bool) -> PostResponse:
        if session_id is not None and not is_header(session_id):
            raise LinkBroken("cannot be told of a session whose id is no line of ASCII", never_left=True)
        stream = None if session_id is None else await self._attach(session_id)
        reply = await self._post_surely(line, session_id, is_request=is_request)
        if reply.status == 404 and session_id is not None and stream is None:
            # A server that knows no session before its load was answered wants no such header either.
            reply = await self._post_surely(line, None, is_request=is_request)
        return reply

    async def _post_surely(self, line: bytes, session_id: str | None, *, is_request: bool) -> PostResponse:
        """Post, and again if it did not arrive; a request that may have arrived is not repeated. Raises LinkBroken."""
        clock = asyncio.get_running_loop().time
        began = clock()
        while True:
            try:
                return await self._link.post(line, self._headers(session_id))
            except LinkBroken as broken:
                if (is_request and not broken.never_left) or clock() - began > RECONNECT_S or self._end is not None:
                    raise
            await asyncio.sleep(RETRY_DELAY_S)

    def _acknowledge(self, reply: PostResponse, request_id: bytes) -> None:
        if not 200 <= reply.status < 300:
            problem = self._link.address.without_secrets(explain_status(reply.status, reply.body))
            self._answer(request_id, f"{self._link.address.shown} {problem}", status=reply.status)
        elif reply.body.strip() and isinstance(parse(reply.body), Message):
            self._take(reply.body, self._connection)

    def _answer(self, request_id: bytes, problem: str, **data: int) -> None:
        """Answer a request of ours in place of a server that will not; another message can only be logged."""
        if not request_id:
            _log.warning("a message was not taken: %s", problem)
        elif self._waiting.pop(request_id, None) is not None:
            error = ErrorObject(ErrorCode.INTERNAL_ERROR, problem, data or UNSET)
            self._deliver(b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (request_id, _encode(error)))

    def _headers(self, session_id: str | None) -> dict[str, str]:
        headers = {CONNECTION_HEADER: self._connection_id or ""}
        return headers if session_id is None else {**headers, SESSION_HEADER: session_id}

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    async def _attach(self, session_id: str) -> ServerStream | None:
        """Return the stream of a session when it is open; None when the server has none for it, or not yet."""
        stream = self._streams.of_sessions.get(session_id) or self._open(session_id)
        await stream.opened.wait()
        return stream if stream.end is None else None

    def _open(self, session_id: str | None) -> ServerStream:
        stream = ServerStream(self._link, self._headers(session_id), lambda line: self._take(line, stream))
        stream.on_gap = lambda: self._fail_waiting(session_id, "lost an event stream; what was under way is not known")
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
            self._fail(stream.end or ConnectionClosed("the connection was closed here"))
        elif self._streams.of_sessions.get(session_id) is stream:
            del self._streams.of_sessions[session_id]
            if stream.was_open and stream.end is not None:
                self._fail_waiting(session_id, stream.end.problem)

    def _take(self, line: bytes, stream: ServerStream | None) -> None:
        message = parse(line) if b'"id"' in line else None
        if not isinstance(message, Message) or message.id is UNSET:
            self._deliver(line)
        elif message.method is not None:
            session_id = _session_of(message.params)
            if session_id is not None:
                self._asked[bytes(message.id)] = session_id
            self._deliver(line)
        else:
            self._take_response(line, message, stream)

    def _take_response(self, line: bytes, message: Message, stream: ServerStream | None) -> None:
        waiting = self._waiting.pop(bytes(message.id) if message.id is not UNSET else b"", None)
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
            _log.debug("a session was never quiet; the answer to its load is delivered all the same")
        self._deliver(line)

    def _deliver(self, line: bytes) -> None:
        if self._end is None:
            self._receiver.lines_received([line.replace(b"\n", b" ")])

    # ── ending ──────────────────────────────────────────────────────────────────────────────────

    def _fail_waiting(self, session_id: str | None, problem: str) -> None:
        """Answer the requests that can have no answer any more: all that wait for a stream that is gone."""
        for request_id, waiting in list(self._waiting.items()):
            is_here = waiting.session_id == session_id or (session_id is None and waiting.method in OPENING)
            if is_here:
                self._answer(request_id, f"{self._link.address.shown} {problem}")

    def _fail(self, end: ConnectionClosed) -> None:
        if self._give_up(end):
            self._receiver.input_ended(was_file=False)

    def _give_up(self, end: ConnectionClosed) -> bool:
        if self._end is not None:
            return False
        self._end = end
        self._queue.close()
        return True


class _Streams:
    """The event streams of one connection, that of the connection itself included."""

    def __init__(self) -> None:
        self.of_sessions: dict[str, ServerStream] = {}
        self.running: dict[ServerStream, asyncio.Task[None]] = {}
        self.is_paused = False

    def add(self, stream: ServerStream, task: asyncio.Task[None]) -> None:
        """Take a stream, and the task that reads it."""
        self.running[stream] = task
        if self.is_paused:
            stream.pause()

    def pause(self) -> None:
        """Read none of them any further."""
        self.is_paused = True
        for stream in self.running:
            stream.pause()

    def resume(self) -> None:
        """Read on."""
        self.is_paused = False
        for stream in self.running:
            stream.resume()


class _Scope(msgspec.Struct, rename="camel"):
    session_id: str | UnsetType | None = UNSET


_decode = msgspec.json.Decoder(_Scope).decode


def _session_of(content: Raw | UnsetType) -> str | None:
    """Return the session that params or a result name, if they name one."""
    if content is UNSET:
        return None
    try:
        return _decode(content).session_id or None
    except BAD_JSON:
        return None
