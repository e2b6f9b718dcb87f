"""`/acp` over HTTP: POST sends messages, GET opens event streams, DELETE ends the connection.

An event stream sends the messages of one stream of a viewer as server-sent events:

    id: 6f1c.42.3
    data: {"jsonrpc":"2.0","method":"session/update","params":{…}}

Each event is one message and has no name. Comments keep the stream alive. A stream begins with an id without data. That
is not an event, but a client that loses the stream before the first event can resume from that id.
"""

import asyncio
import re
import secrets
from collections.abc import Callable, Generator
from contextlib import contextmanager

from msgspec import UNSET

from dragoman.bridge import ServedAgent, Viewer, ViewerAccess, ViewerStream
from dragoman.bridge.front.asgi import Headers, Scope
from dragoman.bridge.front.exchange import JSON, NO_STORE, ClientGoneError, Exchange, HttpError, race
from dragoman.bridge.front.limits import RequestLimits
from dragoman.bridge.guard import Grant, Share
from dragoman.protocol import methods
from dragoman.wire.envelope import session_of
from dragoman.wire.message import Malformed, Message, parse

AFFINITY_COOKIE = "acp_affinity"


def access_of(grant: Grant) -> ViewerAccess:
    """Return the access rights of a viewer with this grant."""
    share = grant.share
    return ViewerAccess(grant.role == "reader", None if share is None else share.session, grant.share_id)


class HttpViewer:
    """A viewer that is connected by separate requests. Between them it may have none."""

    def __init__(self, agent: ServedAgent, viewer: Viewer, grant: Grant) -> None:
        self.agent = agent
        self.viewer = viewer
        self.role = grant.role
        self.share_id = grant.share_id
        self.open_requests = 0
        """Running requests, mostly event streams."""
        self.timer: asyncio.TimerHandle | None = None


class HttpViewers:
    """All viewers over HTTP. A viewer without a running request is closed after a while."""

    def __init__(self, limits: RequestLimits) -> None:
        self._limits = limits
        self._open: dict[str, HttpViewer] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def open(self, agent: ServedAgent, grant: Grant, address: str | None = None) -> HttpViewer:
        """Open a viewer. Raises TooManyViewersError."""
        viewer = agent.open_viewer(access_of(grant), address=address)
        connection = HttpViewer(agent, viewer, grant)
        self._open[viewer.id] = connection
        self._restart_timer(connection)
        return connection

    def find(self, connection_id: str, agent: ServedAgent, grant: Grant) -> HttpViewer | None:
        """Return an open viewer for its next request, or None if this agent has no such viewer with this grant."""
        connection = self._open.get(connection_id)
        if connection is None or connection.agent is not agent:
            return None
        if (connection.role, connection.share_id) != (grant.role, grant.share_id):
            return None
        if connection.viewer.closed.is_set():
            self._forget(connection)
            return None
        self._restart_timer(connection)
        return connection

    @contextmanager
    def in_use(self, connection: HttpViewer) -> Generator[None]:
        """Keep a viewer open during a request. Raises HttpError if it has too many running requests."""
        if connection.open_requests >= self._limits.max_streams:
            limit = self._limits.max_streams
            raise HttpError(429, f"this connection has {limit} event streams open, the limit; close some first")
        connection.open_requests += 1
        self._restart_timer(connection)
        try:
            yield
        finally:
            connection.open_requests -= 1
            self._restart_timer(connection)

    async def close(self, connection: HttpViewer) -> None:
        """Close one viewer."""
        self._forget(connection)
        await connection.viewer.close()

    async def close_all(self) -> None:
        """Close all viewers."""
        for connection in list(self._open.values()):
            await self.close(connection)
        await asyncio.gather(*self._closing)

    def _restart_timer(self, connection: HttpViewer) -> None:
        """Restart the timer that closes an unused viewer, unless a request is running."""
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None
        if connection.open_requests == 0 and connection.viewer.id in self._open:
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(self._limits.reattach_s, self._time_out, connection)

    def _time_out(self, connection: HttpViewer) -> None:
        task = asyncio.ensure_future(self.close(connection))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    def _forget(self, connection: HttpViewer) -> None:
        self._open.pop(connection.viewer.id, None)
        if connection.timer is not None:
            connection.timer.cancel()
            connection.timer = None


class Affinity:
    """The cookie by which a load balancer routes a client back to this bridge. It is not a credential."""

    def __init__(self) -> None:
        self._value = secrets.token_hex(8)

    def cookie(self, scope: Scope) -> Headers:
        """Return the header that sets the cookie, or no header if the request already has it."""
        pair = f"{AFFINITY_COOKIE}={self._value}"
        for key, value in scope["headers"]:
            if key == b"cookie" and pair.encode() in [one.strip() for one in value.split(b";")]:
                return []
        path = scope.get("root_path") or "/"
        secure = "; Secure" if scope.get("scheme") in {"https", "wss"} else ""
        return [(b"set-cookie", f"{pair}; Path={path}; HttpOnly; SameSite=Strict{secure}".encode())]


CONNECTION_ID = b"acp-connection-id"
SESSION_ID = b"acp-session-id"

SESSION_METHODS = frozenset(
    (
        methods.SESSION_PROMPT.name,
        methods.SESSION_CANCEL.name,
        methods.SESSION_CLOSE.name,
        methods.SESSION_SET_MODE.name,
        methods.SESSION_SET_CONFIG_OPTION.name,
    )
)
"""Methods that must name their session in a header. At least one official client omits it for the others."""

_COMMENT = b":\n\n"
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers the events
]

_NOTHING = re.compile(r"0(\.0*)?")
"""The weight (`q=0`) of a type that a client does not accept."""

_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class HttpEndpoint:
    """Serves `/acp` over HTTP."""

    def __init__(
        self,
        connections: HttpViewers,
        affinity: Affinity,
        limits: RequestLimits,
        max_message_bytes: int,
        *,
        address_of: Callable[[Scope], str | None],
        watch_share: Callable[[Share | None], asyncio.TimerHandle | None],
    ) -> None:
        self._connections = connections
        self._affinity = affinity
        self._address_of = address_of
        self._watch_share = watch_share
        self._limits = limits
        self._max_message_bytes = max_message_bytes

    async def serve(self, exchange: Exchange, agent: ServedAgent, grant: Grant, stopping: asyncio.Event) -> None:
        """Answer one request. Raises HttpError and ClientGoneError."""
        exchange.allow("POST", "GET", "DELETE")
        if exchange.method == "POST":
            await self._post(exchange, agent, grant)
        elif exchange.method == "GET":
            await self._stream(exchange, agent, grant, stopping)
        else:
            await self._connections.close(self._find(exchange, agent, grant))
            await exchange.reply(202)

    def _find(self, exchange: Exchange, agent: ServedAgent, grant: Grant) -> HttpViewer:
        connection_id = exchange.header(CONNECTION_ID)
        if not connection_id:
            raise HttpError(400, "Acp-Connection-Id is missing; the response to initialize contains it")
        connection = self._connections.find(connection_id, agent, grant)
        if connection is None:
            raise HttpError(404, "this connection no longer exists; start a new one with initialize")
        return connection

    async def _post(self, exchange: Exchange, agent: ServedAgent, grant: Grant) -> None:
        body = await exchange.read_json(self._max_message_bytes, self._limits.body_timeout_s)
        message = _parse(body)
        line = body.translate(_ONE_LINE)  # valid JSON has line ends only between tokens, as white space
        if message.method == methods.INITIALIZE.name and not exchange.header(CONNECTION_ID):
            if message.id is UNSET:
                raise HttpError(400, "initialize has no id, so it cannot be answered; send it as a request")
            await self._greet(exchange, agent, grant, line)
            return
        connection = self._find(exchange, agent, grant)
        await _check_session(message, exchange.header(SESSION_ID), connection.viewer, agent)
        connection.viewer.receive(line)
        await exchange.reply(202)

    async def _greet(self, exchange: Exchange, agent: ServedAgent, grant: Grant, line: bytes) -> None:
        connection = self._connections.open(agent, grant, self._address_of(exchange.scope))
        answers: list[bytes] = []

        async def greet() -> None:
            answers.append(await connection.viewer.greet(line))

        try:
            with self._connections.in_use(connection):  # an agent may take a minute to start
                await race(greet(), exchange.wait_disconnect())
        finally:
            if not answers:
                await asyncio.shield(self._connections.close(connection))
        if not answers:
            raise ClientGoneError
        headers = [NO_STORE, (CONNECTION_ID, connection.viewer.id.encode()), *self._affinity.cookie(exchange.scope)]
        await exchange.reply(200, answers[0], headers, kind=JSON)

    async def _stream(self, exchange: Exchange, agent: ServedAgent, grant: Grant, stopping: asyncio.Event) -> None:
        if not _accepts_events(exchange.header(b"accept")):
            raise HttpError(406, "this is an event stream; send Accept: text/event-stream, or upgrade to a WebSocket")
        connection = self._find(exchange, agent, grant)
        viewer, session_id = connection.viewer, exchange.header(SESSION_ID)
        with self._connections.in_use(connection):
            last_event_id = exchange.header(b"last-event-id")
            if session_id is None:
                stream = viewer.connection_stream(last_event_id)
            else:
                stream = viewer.session_stream(session_id, last_event_id)
            if stream is None:
                raise HttpError(404, "this connection knows no such session; create, load or resume it first")
            over = self._watch_share(grant.share)
            try:
                await exchange.start(200, [*STREAM_HEADERS, (CONNECTION_ID, viewer.id.encode())])
                await EventStreamWriter(exchange, stream, self._limits.keep_alive_s).run(viewer.closed, stopping)
            finally:
                if over is not None:
                    over.cancel()


def _parse(body: bytes) -> Message:
    if body.lstrip()[:1] == b"[":
        raise HttpError(501, "batches are not part of ACP; send one message per request")
    message = parse(body)
    if isinstance(message, Malformed):
        raise HttpError(400, f"the body is not a JSON-RPC message: {message.problem}")
    return message


async def _check_session(message: Message, header: str | None, viewer: Viewer, agent: ServedAgent) -> None:
    """Check that header and body name the same session. A proxy routes by the header, and the bridge by the body."""
    if message.method is None:
        return
    is_of_session = message.method in SESSION_METHODS
    if header is None and is_of_session:
        raise HttpError(400, f"Acp-Session-Id is missing; {message.method} belongs to a session")
    if header is None:
        return
    named = session_of(message.params)  # the method's handler reports a missing one
    if named is not None and header != named:
        raise HttpError(400, "Acp-Session-Id names another session than the sessionId in the body")
    if is_of_session and not (viewer.sees(header) and (viewer.knows(header) or await agent.might_have_session(header))):
        raise HttpError(404, "this connection knows no such session; create, load or resume it first")


def _accepts_events(accept: str | None) -> bool:
    return any(_is_wanted(*kind.lower().split(";")) for kind in (accept or "").split(","))


def _is_wanted(kind: str, *parameters: str) -> bool:
    weights = [value.strip() for name, _, value in (one.partition("=") for one in parameters) if name.strip() == "q"]
    return kind.strip() == "text/event-stream" and not any(map(_NOTHING.fullmatch, weights))


# ── event streams ─────────────────────────────────────────────────────────────────────────────────


def encode_events(messages: list[bytes], ids: list[bytes] | None = None) -> bytes:
    """Return messages as server-sent events. The messages contain no line ends."""
    if ids is None:
        return b"data: %b\n\n" % b"\n\ndata: ".join(messages)
    return b"".join([b"id: %b\ndata: %b\n\n" % event for event in zip(ids, messages, strict=True)])


class EventStreamWriter:
    """Writes a stream to one viewer at the speed at which the viewer reads."""

    def __init__(self, exchange: Exchange, stream: ViewerStream, keep_alive_s: float) -> None:
        self._exchange = exchange
        self._stream = stream
        self._keep_alive_s = keep_alive_s
        self._writing = 0
        self._turn = asyncio.Lock()
        """Held during a write: over HTTP/2 a long event is sent in parts, and a comment must not come between them."""
        self._wrote_at = 0.0

    async def run(self, *ends: asyncio.Event) -> None:
        """Send until the stream ends, the client disconnects or one of these events is set."""
        try:
            event_id = self._stream.event_id()
            await self._exchange.write(_COMMENT if event_id is None else b"id: %b\n\n" % event_id)
            is_gone, *_ = await race(
                self._exchange.wait_disconnect(), self._pump(), self._keep_alive(), *(end.wait() for end in ends)
            )
        finally:
            self._stream.end()  # otherwise unread events would still count against the viewer
        if not (
            self._writing or is_gone
        ):  # a client that does not read would not read the end either: the server cuts it
            await self._exchange.write(b"", more=False)

    async def _pump(self) -> None:
        while items := await self._stream.next_batch():
            await self._write(b"".join([item.encode(encode_events) for item in items]))

    async def _write(self, piece: bytes) -> None:
        self._writing += 1
        async with self._turn:
            await self._exchange.write(piece)
        self._writing -= 1
        self._wrote_at = asyncio.get_running_loop().time()

    async def _keep_alive(self) -> None:
        """Send a comment after a silence, so that proxies keep the stream and TCP detects a dead peer."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._keep_alive_s)
            if not self._writing and loop.time() - self._wrote_at >= self._keep_alive_s:
                await self._write(_COMMENT)
