"""One HTTP connection to the agent under check: its POSTs, its streams, and our answers to its requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec

from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.http_probe import CONNECT_TIMEOUT_S, JSON_TYPE, HttpProbe, HttpReply, ProbeEvent, ProbeStream
from dragoman.check.driver.stage import Stage
from dragoman.check.judge.message import Object, decode_object, part
from dragoman.check.judge.session import ALIVE
from dragoman.protocol.address import is_header
from dragoman.protocol.streamable_http import CONNECTION_HEADER, SESSION_HEADER

JSON_HEADERS = {"Content-Type": JSON_TYPE, "Accept": JSON_TYPE}
INITIALIZE_ID = 1

NO_STREAMABLE_HTTP = frozenset((404, 405, 406, 426, 501))
"""Responses to `initialize` from a server without Streamable HTTP, which may only support WebSockets."""

AnswerPlace = tuple[ProbeStream, ProbeEvent]
"""A response, and the stream on which it arrived."""


def encode(method: str, params: Any, request_id: int | str | None = None) -> bytes:
    """Return an encoded request, or a notification if the id is None."""
    head: Object = {"jsonrpc": "2.0", "method": method, "params": params}
    return msgspec.json.encode(head if request_id is None else {**head, "id": request_id})


class HttpProbeConnection:
    """Posts messages, opens streams, and answers the agent's requests on them."""

    def __init__(self, stage: Stage, probe: HttpProbe, connection_id: str, tasks: asyncio.TaskGroup) -> None:
        self.id = connection_id
        self.streams: dict[str | None, ProbeStream] = {}
        """The open streams by session. The connection's stream has the key None."""
        self.probe = probe
        self._stage = stage
        self._tasks = tasks
        self._reading: list[asyncio.Task[None]] = []
        self._activity = asyncio.Event()
        self._last_id = INITIALIZE_ID
        self._services = ClientServices(stage.root, stage.options.without, stage.dialect.version)

    def headers(self, session_id: str | None = None) -> dict[str, str]:
        """Return the headers that name the connection and the session."""
        named = {CONNECTION_HEADER: self.id}
        return named if session_id is None else {**named, SESSION_HEADER: session_id}

    # ── posts ───────────────────────────────────────────────────────────────────────────────────

    async def send(self, body: bytes, session_id: str | None = None, *, timeout_s: float | None = None) -> HttpReply:
        """Post a message."""
        headers = {**JSON_HEADERS, **self.headers(session_id)}
        patience_s = timeout_s or min(CONNECT_TIMEOUT_S, self._stage.options.turn_timeout_s)
        return await self.probe.send("POST", headers, body, timeout_s=patience_s)

    async def post(self, body: bytes, session_id: str | None = None) -> HttpReply:
        """Post a message and judge the acknowledgement."""
        reply = await self.send(body, session_id)
        judge = self.probe.judge
        if reply.status != 202:
            detail = f"the server {reply.shown} to a message, where 202 was expected"
            judge.record_breach("ACP-HTTP-004", detail, reply.entries, warn=not reply.status)
            return reply
        judge.count_occasion("ACP-HTTP-004")
        if reply.body.strip():
            judge.record_breach("ACP-HTTP-005", "the answer 202 has a body", reply.entries)
        else:
            judge.count_occasion("ACP-HTTP-005")
        return reply

    async def request(
        self, method: str, params: Object, timeout_s: float, *, session_id: str | None = None
    ) -> AnswerPlace | None:
        """Post a request and wait for its response on any stream. Return None on a timeout."""
        request_id = await self.begin(method, params, session_id=session_id)
        return None if request_id is None else await self.find_answer(request_id, timeout_s)

    async def begin(self, method: str, params: Object, *, session_id: str | None = None) -> int | None:
        """Post a request and return its id. Return None if the server refuses it."""
        request_id = self._next_id()
        reply = await self.post(encode(method, params, request_id), session_id)
        return request_id if 200 <= reply.status < 300 else None

    async def find_answer(self, request_id: Any, timeout_s: float) -> AnswerPlace | None:
        """Wait for the response to a request on any stream. Return None on a timeout."""
        await self.wait_until(lambda: self.find(request_id) is not None, timeout_s)
        found = self.find(request_id)
        if found is None:
            self.probe.record_event(f"no response to the request {request_id} on any stream within {timeout_s:g} s")
        return found

    async def new_session(self, name: str, *, request_id: str | None = None) -> str | None:
        """Open a session and judge on which stream the response arrives. Return None if the agent opens none."""
        params: Object = {"cwd": str(self._stage.directory(name)), "mcpServers": []}
        used_id = request_id or self._next_id()
        reply = await self.post(encode("session/new", params, used_id))
        if not reply.status:
            await self._check_second_message(reply)
        if not 200 <= reply.status < 300:
            return None
        place = await self._find_opening(used_id)
        if place is None and self._stage.knowledge.is_deaf:
            return None
        self.judge_opening("session/new", place)
        session_id = None if place is None else part(place[1].message or {}, "result").get("sessionId")
        return session_id if isinstance(session_id, str) and is_header(session_id) else None

    async def _check_second_message(self, unanswered: HttpReply) -> None:
        """Judge whether a server answers a second message after it has left one unanswered."""
        reply = await self.send(encode(ALIVE, {}, self._next_id()), timeout_s=self._stage.options.timeout_s)
        if not reply.status:
            self._stage.knowledge.is_mute = True
            detail = "two messages got no answer, where 202 was expected at once"
            self.probe.judge.record_breach("ACP-HTTP-004", detail, (*unanswered.entries, *reply.entries))

    async def _find_opening(self, request_id: Any) -> AnswerPlace | None:
        """Wait for the response to `session/new`.

        If none arrives, send a liveness request. An answer to it means that the agent is only slow.
        """
        options = self._stage.options
        place = await self.find_answer(request_id, min(options.timeout_s, options.turn_timeout_s))
        if place is not None:
            return place
        alive_id = self._next_id()
        reply = await self.post(encode(ALIVE, {}, alive_id))
        await self.wait_until(lambda: self.find(alive_id) is not None, options.timeout_s)
        if self.find(alive_id) is not None or self.find(request_id) is not None:
            return await self.find_answer(request_id, options.turn_timeout_s)
        self._stage.knowledge.is_deaf = True
        stream = self.streams[None]
        is_read = all(each.message is not None for each in stream.events)
        if (
            reply.status == 202 and stream.is_open and is_read
        ):  # otherwise another rule was broken, and a finding exists
            fate = "the stream of the connection has ended" if stream.has_ended else "the streams are silent"
            detail = f"no response came on any stream, to session/new or to a request after it; {fate}"
            self.probe.judge.record_breach("ACP-HTTP-016", detail, reply.entries)
        return None

    def judge_opening(self, method: str, place: AnswerPlace | None) -> None:
        """Judge on which stream the response to a request that opens a session arrives."""
        stream = self.streams.get(None)
        if place is None:
            if stream is not None and stream.is_open:
                detail = (
                    f"no response to {method} came on the stream of the connection in time; --turn-timeout gives more"
                )
                entry = self.probe.record_event(f"no response to {method}")
                self.probe.judge.record_breach("ACP-HTTP-016", detail, (entry,), warn=True)
            return
        if place[0] is stream:
            self.probe.judge.count_occasion("ACP-HTTP-016")
        else:
            detail = f"the response to {method} came on the stream of {place[0].name}"
            self.probe.judge.record_breach("ACP-HTTP-016", detail, (place[1].entry,))

    async def clean_up(self, session_id: str) -> None:
        """Open the stream of a session, and delete the session if the agent can, so that it leaves nothing in lists."""
        if session_id not in self.streams:
            await self.open(session_id)
        if self._stage.offers("sessionCapabilities.delete"):
            timeout_s = 0.0 if self._stage.knowledge.has_silent_sessions else self._stage.options.timeout_s
            await self.request("session/delete", {"sessionId": session_id}, timeout_s, session_id=session_id)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def find(self, request_id: Any) -> AnswerPlace | None:
        """Return the response to a request if it has arrived on any stream."""
        for stream in self.streams.values():
            for event in stream.find_answers(request_id):
                return stream, event
        return None

    # ── streams ─────────────────────────────────────────────────────────────────────────────────

    async def open(
        self, session_id: str | None = None, headers: Mapping[str, str] | None = None, *, is_judged: bool = True
    ) -> ProbeStream:
        """Open a stream and judge how it opens."""
        name = "the connection" if session_id is None else f"session {session_id}"
        stream = ProbeStream(name, self._activity, self._receive)
        self.streams[session_id] = stream
        if session_id is not None and self._stage.knowledge.has_silent_sessions:
            return stream  # the others were judged, and this one would not work either
        reading = self.probe.read(stream, {**self.headers(session_id), **(headers or {})})
        self._reading.append(self._tasks.create_task(reading))
        timeout_s = self._stage.options.timeout_s
        await self.wait_until(lambda: stream.reply is not None, timeout_s)
        reply = stream.reply or HttpReply(0, {}, b"", (self.probe.record_event(f"no answer within {timeout_s:g} s"),))
        if stream.is_open:
            self.probe.judge.count_occasion("ACP-HTTP-015")
        elif is_judged:
            what = f"{reply.shown} with {reply.content_type or 'no type'}" if reply.status else reply.shown
            detail = f"a GET for the stream of {name} opened no event stream: the server {what}"
            is_broken = stream.reply is not None and not reply.status
            self.probe.judge.record_breach("ACP-HTTP-015", detail, reply.entries, warn=is_broken)
        if session_id is not None and is_judged and stream.is_useless:
            self._stage.knowledge.has_silent_sessions = True
        return stream

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds, checking it after each stream event. Return whether it holds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._activity.clear()
                    await self._activity.wait()
        return condition()

    async def drop(self) -> None:
        """Close all streams, as a client does that disconnects without notice."""
        self.streams.clear()
        for task in self._reading:
            task.cancel()
        if self._reading:
            await asyncio.wait(self._reading)
        self._reading.clear()

    def _receive(self, event: ProbeEvent) -> None:
        """Judge whether an event is a message, and answer a request."""
        message = event.message
        if message is None or message.get("jsonrpc") != "2.0":
            detail = "the data of an event is not JSON-RPC message"
            self.probe.judge.record_breach("ACP-HTTP-018", detail, (event.entry,))
            return
        self.probe.judge.count_occasion("ACP-HTTP-018")
        if "id" in message and isinstance(message.get("method"), str):
            params = part(message, "params")
            sender = _Sender(self, params.get("sessionId"))
            self._services.handle(sender, message["id"], str(message["method"]), params)

    def spawn(self, body: bytes, session_id: str | None) -> None:
        """Post our answer to a request of the agent."""
        self._tasks.create_task(self._post_answer(body, session_id))

    async def _post_answer(self, body: bytes, session_id: str | None) -> None:
        await self.post(body, session_id)


class _Sender:
    """Sends answers to requests of one session."""

    def __init__(self, connection: HttpProbeConnection, session_id: Any) -> None:
        self._connection = connection
        self._session_id = session_id if isinstance(session_id, str) and is_header(session_id) else None

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request."""
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result})
        self._connection.spawn(body, self._session_id)

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        """Answer a request with an error."""
        error = {"code": code, "message": message}
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error})
        self._connection.spawn(body, self._session_id)


@asynccontextmanager
async def connect_http(stage: Stage, probe: HttpProbe) -> AsyncGenerator[HttpProbeConnection | None]:
    """Post `initialize` and log in if configured. Yield None, with a finding, if this does not open a connection."""
    connection_id = None if stage.knowledge.is_mute else await _initialize(stage, probe)
    if connection_id is None:
        yield None
        return
    async with asyncio.TaskGroup() as tasks:
        connection = HttpProbeConnection(stage, probe, connection_id, tasks)
        try:
            await connection.open()
            if stage.options.auth is not None:
                login = {"methodId": stage.options.auth}
                await connection.request(stage.dialect.login, login, stage.options.turn_timeout_s)
            yield connection
        finally:
            await connection.drop()


async def _initialize(stage: Stage, probe: HttpProbe) -> str | None:
    """Initialize the connection and judge the answer. Return the connection's id.

    An answer that fails a rule still opens the connection if it has an id, so that the other rules are tried.
    """
    services = ClientServices(stage.root, stage.options.without, stage.dialect.version)
    hello = encode("initialize", stage.initialize_params(stage.dialect.version, services.capabilities), INITIALIZE_ID)
    reply = await probe.send("POST", JSON_HEADERS, hello, timeout_s=stage.options.start_timeout_s)
    if reply.status in NO_STREAMABLE_HTTP:
        return None
    judge = probe.judge
    answer = decode_object(reply.body) or {}
    problem = _find_problem(reply, answer)
    if problem is not None:
        stage.knowledge.is_mute = not reply.status
        judge.record_breach("ACP-HTTP-001", problem, reply.entries)
    else:
        judge.count_occasion("ACP-HTTP-001")
    if not 200 <= reply.status < 300:
        return None
    connection_id = reply.headers.get(CONNECTION_HEADER, "")
    if connection_id:
        judge.count_occasion("ACP-HTTP-002")
    else:
        judge.record_breach("ACP-HTTP-002", f"the answer to initialize has no {CONNECTION_HEADER}", reply.entries)
    result = answer.get("result")
    if isinstance(result, dict) and connection_id:
        given = cast("Object", result).get("connectionId")
        if given == connection_id:
            judge.count_occasion("ACP-HTTP-003")
        else:
            what = "has no connectionId" if given is None else "has another connectionId than the header"
            judge.record_breach("ACP-HTTP-003", f"the result of initialize {what}", reply.entries)
    return connection_id or None


def _find_problem(reply: HttpReply, answer: Object) -> str | None:
    if not reply.status:
        return f"the server {reply.shown} to initialize; if it only needs longer, give it --start-timeout"
    if reply.status != 200:
        return f"the server {reply.shown} to initialize, where 200 was expected"
    if reply.content_type != JSON_TYPE:
        return f"the answer to initialize is {reply.content_type or 'without a type'}, and not {JSON_TYPE}"
    if answer.get("id") != INITIALIZE_ID or not {"result", "error"} & answer.keys():
        return "the body of the answer to initialize is not its JSON-RPC response"
    return None
