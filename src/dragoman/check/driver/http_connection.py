"""One connection over HTTP to the agent under check: its posts, its streams, and our answers to its requests."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import msgspec

from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.http_probe import JSON_TYPE, HttpProbe, HttpReply, ProbeEvent, ProbeStream
from dragoman.check.driver.stage import Stage
from dragoman.check.judge.message import Object, decode_object, part
from dragoman.protocol.address import is_header
from dragoman.protocol.streamable_http import CONNECTION_HEADER, SESSION_HEADER

JSON_HEADERS = {"Content-Type": JSON_TYPE, "Accept": JSON_TYPE}
INITIALIZE_ID = 1

ELSEWHERE = frozenset((404, 405, 406, 426, 501))
"""Answers to `initialize` of a server without Streamable HTTP: it may have WebSockets only."""

AnswerPlace = tuple[ProbeStream, ProbeEvent]
"""A response, and the stream on which it came."""


def encode(method: str, params: Any, request_id: int | str | None = None) -> bytes:
    """Return a request, or without an id a notification."""
    head: Object = {"jsonrpc": "2.0", "method": method, "params": params}
    return msgspec.json.encode(head if request_id is None else {**head, "id": request_id})


class HttpProbeConnection:
    """Posts messages, opens streams, and answers what the agent asks on them."""

    def __init__(self, stage: Stage, probe: HttpProbe, connection_id: str, tasks: asyncio.TaskGroup) -> None:
        self.id = connection_id
        self.streams: dict[str | None, ProbeStream] = {}
        """Those that are open, by session; that of the connection is under None."""
        self.probe = probe
        self._stage = stage
        self._tasks = tasks
        self._reading: list[asyncio.Task[None]] = []
        self._news = asyncio.Event()
        self._last_id = INITIALIZE_ID
        self._services = ClientServices(stage.root, stage.options.without, stage.dialect.version)

    def headers(self, session_id: str | None = None) -> dict[str, str]:
        """Return the headers that name the connection, and the session."""
        named = {CONNECTION_HEADER: self.id}
        return named if session_id is None else {**named, SESSION_HEADER: session_id}

    # ── posts ───────────────────────────────────────────────────────────────────────────────────

    async def send(self, body: bytes, session_id: str | None = None) -> HttpReply:
        """Post a message."""
        return await self.probe.send("POST", {**JSON_HEADERS, **self.headers(session_id)}, body)

    async def post(self, body: bytes, session_id: str | None = None) -> HttpReply:
        """Post a message, and judge how it is acknowledged."""
        reply = await self.send(body, session_id)
        judge = self.probe.judge
        if reply.status != 202:
            detail = f"the server {reply.shown} to a message, where 202 was expected"
            judge.record_breach("ACP-HTTP-004", detail, reply.entries, warn=not reply.status)
            return reply
        judge.saw("ACP-HTTP-004")
        if reply.body.strip():
            judge.record_breach("ACP-HTTP-005", "the answer 202 has a body", reply.entries)
        else:
            judge.saw("ACP-HTTP-005")
        return reply

    async def request(
        self, method: str, params: Object, timeout_s: float, *, session_id: str | None = None
    ) -> AnswerPlace | None:
        """Post a request and wait for its response on any stream; None when there is none in time."""
        request_id = self._next_id()
        reply = await self.post(encode(method, params, request_id), session_id)
        return await self.find_answer(request_id, timeout_s) if 200 <= reply.status < 300 else None

    async def find_answer(self, request_id: Any, timeout_s: float) -> AnswerPlace | None:
        """Wait for the response to a request on any stream; None when there is none in time."""
        await self.wait_until(lambda: self._find(request_id) is not None, timeout_s)
        found = self._find(request_id)
        if found is None:
            self.probe.note(f"no response to the request {request_id} on any stream within {timeout_s:g} s")
        return found

    async def new_session(self, name: str, *, request_id: str | None = None) -> str | None:
        """Open a session, and judge where the response is; None when the agent gives none."""
        params: Object = {"cwd": str(self._stage.directory(name)), "mcpServers": []}
        used_id = request_id or self._next_id()
        reply = await self.post(encode("session/new", params, used_id))
        if not 200 <= reply.status < 300:
            return None
        place = await self.find_answer(used_id, self._stage.options.turn_timeout_s)
        self.judge_opening("session/new", place)
        session_id = None if place is None else part(place[1].message or {}, "result").get("sessionId")
        return session_id if isinstance(session_id, str) and is_header(session_id) else None

    def judge_opening(self, method: str, place: AnswerPlace | None) -> None:
        """Judge where the response to a request that opens a session is."""
        stream = self.streams.get(None)
        if place is None:
            if stream is not None and stream.is_open:
                detail = (
                    f"no response to {method} came on the stream of the connection in time; --turn-timeout gives more"
                )
                entry = self.probe.note(f"no response to {method}")
                self.probe.judge.record_breach("ACP-HTTP-016", detail, (entry,), warn=True)
            return
        if place[0] is stream:
            self.probe.judge.saw("ACP-HTTP-016")
        else:
            detail = f"the response to {method} came on the stream of {place[0].name}"
            self.probe.judge.record_breach("ACP-HTTP-016", detail, (place[1].entry,))

    async def tidy(self, session_id: str) -> None:
        """Delete a session if the agent can, so that the check leaves nothing in its lists."""
        if self._stage.offers("sessionCapabilities.delete"):
            timeout_s = self._stage.options.timeout_s
            await self.request("session/delete", {"sessionId": session_id}, timeout_s, session_id=session_id)

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _find(self, request_id: Any) -> AnswerPlace | None:
        for stream in self.streams.values():
            for event in stream.find_answers(request_id):
                return stream, event
        return None

    # ── streams ─────────────────────────────────────────────────────────────────────────────────

    async def open(
        self, session_id: str | None = None, headers: Mapping[str, str] | None = None, *, is_judged: bool = True
    ) -> ProbeStream:
        """Open a stream, and judge how it opens."""
        name = "the connection" if session_id is None else f"session {session_id}"
        stream = ProbeStream(name, self._news, self._take)
        reading = self.probe.read(stream, {**self.headers(session_id), **(headers or {})})
        self._reading.append(self._tasks.create_task(reading))
        timeout_s = self._stage.options.timeout_s
        await self.wait_until(lambda: stream.reply is not None, timeout_s)
        reply = stream.reply or HttpReply(0, {}, b"", (self.probe.note(f"no answer within {timeout_s:g} s"),))
        if stream.is_open:
            self.probe.judge.saw("ACP-HTTP-015")
        elif is_judged:
            what = f"{reply.shown} with {reply.content_type or 'no type'}" if reply.status else reply.shown
            detail = f"a GET for the stream of {name} opened no event stream: the server {what}"
            self.probe.judge.record_breach("ACP-HTTP-015", detail, reply.entries, warn=not reply.status)
        self.streams[session_id] = stream
        return stream

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something is the case, which only news of a stream makes so; False when it is not in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                while not condition():
                    self._news.clear()
                    await self._news.wait()
        return condition()

    async def drop(self) -> None:
        """Close all streams, as a client does that goes away without a word."""
        self.streams.clear()
        for task in self._reading:
            task.cancel()
        if self._reading:
            await asyncio.wait(self._reading)
        self._reading.clear()

    def _take(self, event: ProbeEvent) -> None:
        """Judge that an event is a message, and answer a request."""
        message = event.message
        if message is None or message.get("jsonrpc") != "2.0":
            detail = "the data of an event is no JSON-RPC message"
            self.probe.judge.record_breach("ACP-HTTP-018", detail, (event.entry,))
            return
        self.probe.judge.saw("ACP-HTTP-018")
        if "id" in message and isinstance(message.get("method"), str):
            params = part(message, "params")
            sender = _Sender(self, params.get("sessionId"))
            self._services.take(sender, message["id"], str(message["method"]), params)

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
    """Post `initialize` and log in if asked to; None when that makes no connection, which is judged."""
    connection_id = await _initialize(stage, probe)
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
    services = ClientServices(stage.root, stage.options.without, stage.dialect.version)
    hello = encode("initialize", stage.hello(stage.dialect.version, services.capabilities), INITIALIZE_ID)
    reply = await probe.send("POST", JSON_HEADERS, hello, timeout_s=stage.options.start_timeout_s)
    if reply.status in ELSEWHERE:
        return None
    judge = probe.judge
    answer = decode_object(reply.body) or {}
    problem = _find_problem(reply, answer)
    if problem is not None:
        judge.record_breach("ACP-HTTP-001", problem, reply.entries, warn=not reply.status)
    else:
        judge.saw("ACP-HTTP-001")
    if not 200 <= reply.status < 300:
        return None
    connection_id = reply.headers.get(CONNECTION_HEADER, "")
    if connection_id:
        judge.saw("ACP-HTTP-002")
    else:
        judge.record_breach("ACP-HTTP-002", f"the answer to initialize has no {CONNECTION_HEADER}", reply.entries)
    result = answer.get("result")
    if isinstance(result, dict) and connection_id:
        given = cast("Object", result).get("connectionId")
        if given == connection_id:
            judge.saw("ACP-HTTP-003")
        else:
            what = "has no connectionId" if given is None else "has another connectionId than the header"
            judge.record_breach("ACP-HTTP-003", f"the result of initialize {what}", reply.entries)
    return connection_id or None


def _find_problem(reply: HttpReply, answer: Object) -> str | None:
    if reply.status != 200:
        return f"the server {reply.shown} to initialize, where 200 was expected"
    if reply.content_type != JSON_TYPE:
        return f"the answer to initialize is {reply.content_type or 'of no type'}, and not {JSON_TYPE}"
    if answer.get("id") != INITIALIZE_ID or not {"result", "error"} & answer.keys():
        return "the body of the answer to initialize is not its JSON-RPC response"
    return None
