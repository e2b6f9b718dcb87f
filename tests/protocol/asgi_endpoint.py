"""A small ACP endpoint on a real server that supports HTTP/2 with and without TLS, and WebSocket."""

import asyncio
import json
import socket
import ssl
from contextlib import asynccontextmanager

from hypercorn.asyncio import serve
from hypercorn.config import Config


class Endpoint:
    """Answers every request with its params. `session/new` creates a session."""

    def __init__(self, *, has_websocket=True):
        self.versions = set()
        self.queues = {}
        self._has_websocket = has_websocket

    async def __call__(self, scope, receive, send):
        if scope["type"] == "websocket":
            await self.websocket(receive, send)
        elif scope["type"] == "http":
            self.versions.add(scope["http_version"])
            await self.http(scope, receive, send)

    async def websocket(self, receive, send):
        await receive()
        if not self._has_websocket:
            await send({"type": "websocket.close"})
            return
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            request = json.loads(message["text"])
            await send({"type": "websocket.send", "text": json.dumps(self.result(request, request["params"]))})

    async def http(self, scope, receive, send):
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        session_id = headers.get("acp-session-id")
        if scope["method"] == "GET":
            await self.stream(session_id, receive, send)
        elif scope["method"] == "DELETE":
            await self.reply(send, 202)
        else:
            await self.post(json.loads(await self.body(receive)), session_id, send)

    async def body(self, receive):
        parts = []
        while (message := await receive())["type"] == "http.request":
            parts.append(message["body"])
            if not message.get("more_body"):
                break
        return b"".join(parts)

    async def post(self, request, session_id, send):
        if request["method"] == "initialize":
            await self.reply(send, 200, json.dumps(self.result(request, {})).encode(), (b"acp-connection-id", b"c"))
            return
        await self.reply(send, 202)
        if request["method"] == "session/new":
            self.put(None, self.result(request, {"sessionId": f"s-{len(self.queues)}"}))
        else:
            self.put(session_id, self.result(request, request["params"]))

    def result(self, request, value):
        return {"jsonrpc": "2.0", "id": request["id"], "result": value}

    def put(self, scope, message):
        self.queues.setdefault(scope, asyncio.Queue()).put_nowait(message)

    async def stream(self, scope, receive, send):
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b": hello\n\n", "more_body": True})
        sending = asyncio.create_task(self.send_events(self.queues.setdefault(scope, asyncio.Queue()), send))
        while (await receive())["type"] != "http.disconnect":
            pass
        sending.cancel()

    async def send_events(self, queue, send):
        while True:
            data = f"data: {json.dumps(await queue.get())}\n\n".encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})

    async def reply(self, send, status, body=b"", *headers):
        await send({"type": "http.response.start", "status": status, "headers": [*headers]})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving(app, *, tls=None):
    """Serve an app and yield its port. `tls` contains the files of a key and a certificate."""
    config = Config()
    if tls is not None:
        config.keyfile, config.certfile = map(str, tls)
    config.accesslog = config.errorlog = None
    config.graceful_timeout = 0.1
    ended = asyncio.Event()
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    config.bind = [f"fd://{listening.detach()}"]
    async with asyncio.timeout(40):
        running = asyncio.ensure_future(serve(app, config, shutdown_trigger=ended.wait))
        try:
            yield port
        finally:
            ended.set()
            await running


def trusting(certificate):
    return ssl.create_default_context(cafile=certificate)
