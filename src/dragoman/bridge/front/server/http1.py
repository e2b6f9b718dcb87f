"""HTTP/1.1 on one connection: one request after another, with h11."""

from collections.abc import Callable
from http import HTTPStatus

import h11

from dragoman.bridge.front.asgi import SEND_FRAMES, Headers, Message, Scope
from dragoman.bridge.front.server.request import (
    MAX_BODY_WAITING_BYTES,
    RequestBody,
    RequestHead,
    ServedRequest,
    date_header,
    make_refusal,
    make_scope,
)
from dragoman.bridge.front.server.tcp import TcpConnection
from dragoman.bridge.front.server.websocket import VERSION, Handshake, WebSocket, is_upgrade, read_handshake

EVENTS_PER_TURN = 64
"""Events of h11 in one turn, mostly pieces of a body."""

_CLOSE = (b"connection", b"close")
_SAID_ALL = frozenset({h11.DONE, h11.MUST_CLOSE, h11.CLOSED})
"""States of h11 in which the whole request of the client has arrived."""


class Http1:
    """Speaks HTTP/1.1 until the connection ends or becomes a WebSocket."""

    unsent_bytes = 0

    def __init__(self, connection: TcpConnection) -> None:
        self._connection = connection
        self._max_head_bytes = connection.context.limits.max_header_bytes
        self._core = h11.Connection(h11.SERVER, max_incomplete_event_size=self._max_head_bytes)
        self._request: Http1Request | None = None
        self._is_paused = False

    @property
    def is_idle(self) -> bool:
        """Whether no request is running."""
        return self._request is None

    @property
    def is_full(self) -> bool:
        """Whether the next request arrived early, or too much of this body waits for the application."""
        if self._is_paused:
            return bool(self._core.trailing_data[0])
        return self._request is not None and self._request.body.waiting_bytes >= MAX_BODY_WAITING_BYTES

    def receive(self, data: bytes) -> None:
        """Add received bytes to the input."""
        self._core.receive_data(data)

    def advance(self) -> bool:
        """Process the input, event by event of h11."""
        # h11 pauses at the end of a request until it is answered; input of the next request waits inside h11.
        for _ in range(EVENTS_PER_TURN):
            if self.is_full and not self._is_paused:
                return False
            try:
                event = self._core.next_event()
            except h11.RemoteProtocolError as error:
                self._refuse_broken(error.error_status_hint)
                return False
            self._is_paused = event is h11.PAUSED
            if not isinstance(event, h11.Event):
                return False  # h11 needs more input, or the answer of the application
            self._handle(event)
            if not self._connection.is_open:
                return False
        return True

    def ping(self) -> bytes | None:
        """Return None, because HTTP/1.1 has no pings."""
        return None

    def stop(self) -> None:
        """Close the connection once the running request is answered."""
        if self._request is None:
            self._connection.finish()

    def mark_gone(self) -> None:
        """Notify the application that the client has disconnected."""
        if self._request is not None:
            self._request.body.mark_gone()

    def send(self, *events: h11.Event) -> None:
        """Send events, in one write."""
        self._connection.write(b"".join([self._core.send(event) or b"" for event in events]))

    def make_head(self, status: int, headers: Headers) -> h11.Response:
        """Return the head of an answer. The last answer of a connection says `connection: close`."""
        closing = [_CLOSE] if self._connection.context.is_stopping else []
        return h11.Response(status_code=status, headers=[*headers, *closing], reason=_phrase(status))

    def send_continue(self) -> None:
        """Send 100 Continue to a client that waits for it."""
        if self._core.they_are_waiting_for_100_continue:
            self.send(h11.InformationalResponse(status_code=100, headers=[]))

    def refuse(self, status: int, reason: str, headers: Headers | None = None) -> None:
        """Answer a request that the application does not see, and close the connection."""
        if self._core.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            own, body = make_refusal(reason)
            every = [*own, *(headers or []), date_header(), _CLOSE]
            response = h11.Response(status_code=status, headers=every, reason=_phrase(status))
            self.send(response, h11.Data(data=body), h11.EndOfMessage())
        self._connection.finish(discard=True)

    def switch(self, headers: Headers) -> WebSocket:
        """Switch to the WebSocket protocol."""
        self.send(h11.InformationalResponse(status_code=101, headers=headers, reason=b"Switching Protocols"))
        websocket = WebSocket(self._connection)
        early, _ = self._core.trailing_data
        if early:
            websocket.receive(early)
        self._connection.switch_to(websocket)
        return websocket

    def request_ended(self, request: "Http1Request") -> None:
        """Accept the next request, because the application has finished this one."""
        self._request = None
        if not self._connection.is_open:
            return
        if not request.is_complete:
            self._fail_request(request)
        elif self._core.our_state is h11.DONE and self._core.their_state is h11.DONE:
            self._core.start_next_cycle()
            self._connection.record_use()
            self._connection.advance_soon()
        else:
            self._connection.finish(discard=self._core.their_state not in _SAID_ALL)

    def _fail_request(self, request: "Http1Request") -> None:
        """Answer 500, or cut the connection if half an answer was sent, so that it cannot look complete."""
        if request.is_answered:
            self._connection.abort()
        else:
            self.refuse(500, "the bridge could not answer this request; see its log for the reason")

    def _handle(self, event: h11.Event) -> None:
        match event:
            case h11.Request():
                self._begin(event)
            case h11.Data() if self._request is not None:
                self._request.body.put(bytes(event.data))
            case h11.EndOfMessage() if self._request is not None:
                self._request.body.end()
            case _:
                pass

    def _begin(self, event: h11.Request) -> None:
        size = len(event.method) + len(event.target) + sum(len(name) + len(value) + 4 for name, value in event.headers)
        if size > self._max_head_bytes:
            self._refuse_long_head()
            return
        head = RequestHead(
            event.method.decode("ascii"), event.target, list(event.headers), event.http_version.decode("ascii")
        )
        if not is_upgrade(head):
            self._serve(Http1Request(self._connection, self, head), make_scope("http", head, self._connection))
            return
        handshake = read_handshake(head)
        if isinstance(handshake, str):
            self.refuse(400, handshake, [(b"sec-websocket-version", VERSION)])
            return
        scope = make_scope("websocket", head, self._connection)
        scope["subprotocols"] = handshake.subprotocols
        request = WebSocketRequest(self._connection, self, head, handshake)
        scope["extensions"] |= {SEND_FRAMES: request.send_now, "websocket.http.response": {}}
        self._serve(request, scope)

    def _serve(self, request: "Http1Request", scope: Scope) -> None:
        self._request = request
        self._connection.context.spawn(request.run(scope))

    def _refuse_broken(self, status: int) -> None:
        self.mark_gone()
        if status == 431:
            self._refuse_long_head()
        else:
            self.refuse(status, "this is not a valid HTTP/1.1 request; check that the client speaks HTTP/1.1")

    def _refuse_long_head(self) -> None:
        limit = self._max_head_bytes
        self.refuse(
            431, f"the headers of the request are longer than the limit of {limit} bytes; send fewer or shorter ones"
        )


class Http1Request(ServedRequest):
    """A request over HTTP/1.1."""

    def __init__(self, connection: TcpConnection, http: Http1, head: RequestHead) -> None:
        super().__init__(connection, head, RequestBody(lambda _: connection.advance_soon()))
        self.http = http

    async def receive(self) -> Message:
        """Return the next message of the request to the application."""
        self.http.send_continue()
        return await super().receive()

    async def begin(self, status: int, headers: Headers, data: bytes, *, has_more: bool) -> None:
        """Send the head of the answer and its first piece."""
        await self._send([self.http.make_head(status, headers)], data, has_more=has_more)

    async def write(self, data: bytes, *, has_more: bool) -> None:
        """Send the next piece of the answer."""
        await self._send([], data, has_more=has_more)

    def finish(self) -> None:
        """Accept the next request."""
        self.http.request_ended(self)

    async def _send(self, events: list[h11.Event], data: bytes, *, has_more: bool) -> None:
        if not self.connection.is_open:
            raise ConnectionResetError("the connection has ended")
        if data:
            events.append(h11.Data(data=data))
        if not has_more:
            events.append(h11.EndOfMessage())
        self.http.send(*events)
        await self.connection.drained()


class WebSocketRequest(Http1Request):
    """A request for a WebSocket, which the application accepts or answers like any other request."""

    def __init__(self, connection: TcpConnection, http: Http1, head: RequestHead, handshake: Handshake) -> None:
        super().__init__(connection, http, head)
        self._handshake = handshake
        self._sent_connect = False
        self._websocket: WebSocket | None = None

    async def receive(self) -> Message:
        """Return the next message of the WebSocket to the application."""
        if not self._sent_connect:
            self._sent_connect = True
            return {"type": "websocket.connect"}
        if self._websocket is not None:
            return await self._websocket.next_message()
        while (await self.body.receive())["type"] != "http.disconnect":
            pass
        return {"type": "websocket.disconnect", "code": 1006}

    async def send(self, message: Message) -> None:
        """Send a message of the application: the answer to the handshake, then messages of the WebSocket."""
        kind: str = message["type"]
        if self._websocket is not None:
            await self._websocket.send(message)
        elif not self.connection.is_open:
            raise ConnectionResetError("the connection has ended")
        elif kind == "websocket.accept":
            headers = self._handshake.accept(message.get("subprotocol"), list(message.get("headers") or []))
            self._websocket = self.http.switch([*headers, date_header()])
        elif kind == "websocket.close":
            self.is_answered = self.is_complete = True
            self.http.refuse(403, message.get("reason") or "this WebSocket is not accepted")
        else:
            await super().send({**message, "type": kind.removeprefix("websocket.")})

    def send_now(self, make_frames: Callable[[], bytes]) -> None:
        """Send the frames that a function returns, if the WebSocket is open and has room for them."""
        if self._websocket is not None and self._websocket.has_room:
            self.connection.write(make_frames())

    def finish(self) -> None:
        """Close the WebSocket, or accept the next request."""
        if self._websocket is not None:
            self._websocket.end()
        else:
            super().finish()


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
