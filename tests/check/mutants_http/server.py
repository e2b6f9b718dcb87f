"""An ASGI server of an agent over HTTP and WebSocket that follows every rule, or all but one."""

import asyncio
import itertools
import json
import uuid
from collections import defaultdict

JSON_TYPE = "application/json"
EVENT_STREAM = "text/event-stream"


class Refusal(Exception):
    """A response with an error status."""

    def __init__(self, status):
        self.status = status


class Connection:
    """The sessions of a connection, and the events of each stream."""

    def __init__(self):
        self.id = str(uuid.uuid4())
        self.sessions = set()
        self.events = defaultdict(list)
        self.sent = defaultdict(int)
        self.is_open = True
        self.changed = asyncio.Condition()

    async def add(self, scope, message):
        async with self.changed:
            self.events[scope].append(message)
            self.changed.notify_all()

    async def end(self):
        async with self.changed:
            self.is_open = False
            self.changed.notify_all()


class MutantServer:
    """Serves a small agent. `breach` is the rule to break, without its `ACP-`."""

    max_message_bytes = 1024 * 1024

    def __init__(self, breach=""):
        self._breach = breach
        self._connections = {}
        self._sessions = set()
        self._numbers = itertools.count(1)
        self._deleted = set()
        self._users = defaultdict(list)
        """The connections that used each JSON-RPC id. A breach answers all of them."""

    def breaks(self, rule):
        return self._breach == rule

    async def stop(self):
        for connection in list(self._connections.values()):
            await connection.end()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket":
            await self._serve_socket(receive, send)
        elif scope["type"] == "http":
            headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
            try:
                await getattr(self, f"_{scope['method'].lower()}")(headers, receive, send)
            except Refusal as refusal:
                await respond(send, refusal.status, b'{"error":"refused"}')

    # ── HTTP ────────────────────────────────────────────────────────────────────────────────────

    async def _post(self, headers, receive, send):
        body = await read(receive)
        if headers.get("content-type") != JSON_TYPE and not self.breaks("HTTP-006"):
            raise Refusal(415)
        message = json.loads(body)
        is_hello = isinstance(message, dict) and message.get("method") == "initialize"
        if self.breaks("HTTP-001 never answered") or (self.breaks("HTTP-004 never answered") and not is_hello):
            await receive_end(receive)
            return
        if isinstance(message, list):
            raise Refusal(400 if self.breaks("HTTP-007") else 501)
        if message.get("method") == "initialize":
            await self._initialize(message, send)
            return
        connection = self._find(headers, "HTTP-008", "HTTP-009")
        if self.breaks("HTTP-004 in place") and "id" in message:
            await respond(send, 200, json.dumps(self._handle(message)[-1][1]).encode())
            return
        if connection is not None:
            await self._forward(connection, message, headers)
        status = 200 if self.breaks("HTTP-004") and message.get("method") == "session/cancel" else 202
        await respond(send, status, b"accepted" if self.breaks("HTTP-005") else b"")

    def _find(self, headers, missing, unknown):
        """Return the connection, or None if a breach accepts an invalid request."""
        name = headers.get("acp-connection-id")
        if name is None:
            if self.breaks(missing):
                return None
            raise Refusal(400)
        connection = self._connections.get(name)
        if connection is None and (name in self._deleted or not self.breaks(unknown)):
            raise Refusal(404)
        return connection

    async def _initialize(self, message, send):
        connection = Connection()
        self._connections[connection.id] = connection
        answer = self._answer_initialize(message)
        if not self.breaks("HTTP-003"):
            answer["result"]["connectionId"] = connection.id
        headers = {} if self.breaks("HTTP-002") else {"acp-connection-id": connection.id}
        kind = "text/plain" if self.breaks("HTTP-001") else JSON_TYPE
        await respond(send, 200, json.dumps(answer).encode(), kind, headers)

    def _answer_initialize(self, message):
        version = message["params"]["protocolVersion"]
        can_load = not self.breaks("HTTP-014")
        if version == 2:
            result = {"protocolVersion": 2, "capabilities": {"session": {}}, "info": {"name": "m", "version": "1"}}
        else:
            capabilities = {"loadSession": can_load}
            result = {"protocolVersion": 1, "agentCapabilities": capabilities, "authMethods": []}
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _forward(self, connection, message, headers):
        session_id = message.get("params", {}).get("sessionId")
        if session_id is not None and "acp-session-id" not in headers and not self.breaks("HTTP-010"):
            raise Refusal(400)
        for scope, answer in self._handle(message):
            if scope is None and "result" in answer and "sessionId" in answer["result"]:
                connection.sessions.add(answer["result"]["sessionId"])
            users = self._users[message["id"]]
            users.append(connection)
            for user in users if self.breaks("HTTP-023") else [connection]:
                await user.add(self._place(scope, message), answer)

    def _place(self, scope, message):
        """Return the session whose stream gets the response, or None for the connection's stream."""
        if self.breaks("HTTP-017") and message["method"] == "session/prompt":
            return None
        if self.breaks("HTTP-016") and message["method"] == "session/load":
            return message["params"]["sessionId"]
        return scope

    async def _get(self, headers, receive, send):
        if EVENT_STREAM not in headers.get("accept", "") and not self.breaks("HTTP-011"):
            raise Refusal(406)
        connection = self._find(headers, "HTTP-012", "HTTP-013")
        session_id = headers.get("acp-session-id")
        if connection is not None and session_id is not None:
            known = connection.sessions | (self._sessions if not self.breaks("HTTP-014") else set())
            if session_id not in known and not self.breaks("HTTP-014"):
                raise Refusal(404)
        if self.breaks("HTTP-015 never answered") or (
            self.breaks("HTTP-015 never answered for a session") and session_id is not None
        ):
            await receive_end(receive)
            return
        is_other = self.breaks("HTTP-015 other") or (self._breach.startswith("HTTP-015") and session_id is not None)
        kind = JSON_TYPE if is_other else EVENT_STREAM
        start = {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind.encode())]}
        await send(start)
        is_silent = self.breaks("HTTP-016 silent stream") or (
            self.breaks("HTTP-017 silent session") and session_id is not None
        )
        if is_silent or (self.breaks("HTTP-015 held open") and is_other):
            await send({"type": "http.response.body", "body": b" ", "more_body": True})
            await receive_end(receive)
            return
        if connection is None or kind == JSON_TYPE:
            await send({"type": "http.response.body", "body": b""})
            return
        await send({"type": "http.response.body", "body": b": open\n\n", "more_body": True})
        await self._stream(connection, session_id, headers.get("last-event-id"), receive, send)

    async def _stream(self, connection, scope, last, receive, send):
        at = connection.sent[scope] if last is None or self.breaks("HTTP-026") else int(last)
        gone = asyncio.ensure_future(receive_end(receive))
        try:
            while True:
                async with connection.changed:
                    while len(connection.events[scope]) <= at and connection.is_open:
                        await connection.changed.wait()
                if gone.done() or (not connection.is_open and len(connection.events[scope]) <= at):
                    break
                data = json.dumps(connection.events[scope][at])
                if self.breaks("HTTP-018"):
                    await send({"type": "http.response.body", "body": b"data: hello\n\n", "more_body": True})
                at += 1
                connection.sent[scope] = max(at, connection.sent[scope])
                event = f"id: {at}\ndata: {data}\n\n".encode()
                await send({"type": "http.response.body", "body": event, "more_body": True})
        finally:
            gone.cancel()
        await send({"type": "http.response.body", "body": b""})

    async def _delete(self, headers, receive, send):
        connection = self._find(headers, "HTTP-020", "")
        if connection is not None:
            if not self.breaks("HTTP-022"):
                del self._connections[connection.id]
                self._deleted.add(connection.id)
            if not self.breaks("HTTP-021"):
                await connection.end()
        await respond(send, 200 if self.breaks("HTTP-019") else 202, b"")

    # ── WebSocket ───────────────────────────────────────────────────────────────────────────────

    async def _serve_socket(self, receive, send):
        await receive()
        name = "same" if self.breaks("WS-004") else str(uuid.uuid4())
        headers = [] if self.breaks("WS-001") else [(b"acp-connection-id", name.encode())]
        await send({"type": "websocket.accept", "headers": headers})
        while (event := await receive())["type"] == "websocket.receive":
            text = event.get("text")
            if text is None:
                if not self.breaks("WS-003"):
                    continue
                text = event["bytes"].decode()
            message = json.loads(text)
            is_hello = message.get("method") == "initialize"
            answers = [(None, self._answer_initialize(message))] if is_hello else self._handle(message)
            for _, answer in answers:
                if self.breaks("WS-002"):
                    await send({"type": "websocket.send", "bytes": json.dumps(answer).encode()})
                else:
                    await send({"type": "websocket.send", "text": json.dumps(answer)})

    # ── the agent ───────────────────────────────────────────────────────────────────────────────

    def _handle(self, message):
        """Return the agent's messages in response to a message, each with its session."""
        method, params = message.get("method"), message.get("params", {})
        if "id" not in message or method is None:
            return []
        session_id = params.get("sessionId")

        def respond_with(result):
            return {"jsonrpc": "2.0", "id": message["id"], "result": result}

        if method == "session/new":
            made = f"session-{next(self._numbers)}"
            self._sessions.add(made)
            return [(None, respond_with({"sessionId": made}))]
        if method in ("session/load", "session/resume") and session_id in self._sessions:
            if not self.breaks("HTTP-024"):
                return [(None, respond_with({}))]
        elif method == "session/prompt":
            return [(session_id, each) for each in (*updates(session_id), respond_with({"stopReason": "end_turn"}))]
        error = {"code": -32601, "message": "no such method, or session"}
        return [(None, {"jsonrpc": "2.0", "id": message["id"], "error": error})]


def updates(session_id):
    text = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hello."}}
    idle = {"sessionUpdate": "state_update", "state": "idle", "stopReason": "end_turn"}
    for update in (text, idle):
        yield {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": session_id, "update": update}}


async def respond(send, status, body, kind=JSON_TYPE, headers=None):
    given = {"content-type": kind, "content-length": str(len(body)), **(headers or {})}
    pairs = [(name.encode(), value.encode()) for name, value in given.items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def read(receive):
    body = b""
    while True:
        event = await receive()
        body += event.get("body", b"")
        if not event.get("more_body"):
            return body


async def receive_end(receive):
    while (await receive())["type"] != "http.disconnect":
        pass
