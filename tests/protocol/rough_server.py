"""A hand-written HTTP server without HTTP/2, for responses that no framework allows."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

STREAM_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Request:
    def __init__(self, method, path, headers, body, writer):
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body
        self.message = json.loads(body) if body else {}
        self.writer = writer

    @property
    def scope(self):
        return self.headers.get("acp-session-id")

    def reply(self, status, body=b"", **headers):
        lines = [f"HTTP/1.1 {status} Words", f"Content-Length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    def die(self):
        self.writer.transport.abort()


def event(message, event_id=None):
    text = message if isinstance(message, str) else json.dumps(message)
    numbered = f"id: {event_id}\n" if event_id is not None else ""
    return f"{numbered}data: {text}\n\n".encode()


class Stream:
    """An event stream that the client opened."""

    def __init__(self, request):
        self.writer = request.writer
        self.last_event_id = request.headers.get("last-event-id")
        self.cookie = request.headers.get("cookie")

    def send(self, data):
        self.writer.write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self):
        self.writer.write(b"0\r\n\r\n")
        self.writer.close()

    def break_off(self):
        """Disconnect as if the process exited: the sent bytes arrive, and nothing more."""
        self.writer.close()


class RoughServer:
    """Follows the proposal until a test changes it. `on_get` and `on_post` return True if they handled the request."""

    def __init__(self):
        self.requests = []
        self.streams = asyncio.Queue()
        self.posted = asyncio.Queue()
        self.on_get = lambda request: False
        self.on_post = lambda request: False

    @property
    def messages(self):
        return [request.message for request in self.requests if request.method == "POST"]

    async def handle(self, reader, writer):
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
                while request := await self.read(reader, writer):
                    self.requests.append(request)
                    self.answer(request)
        finally:
            writer.close()

    async def read(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, path, version = head[0].split(" ")
        if version != "HTTP/1.1":
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return None
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        headers = {name.lower(): value for name, value in headers.items()}
        if "upgrade" in headers:
            writer.write(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return None
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Request(method, path, headers, body, writer)

    def answer(self, request):
        if request.method == "GET":
            if not self.on_get(request):
                request.writer.write(STREAM_HEAD)
                self.streams.put_nowait((request.scope, Stream(request)))
        elif request.method == "DELETE":
            request.reply(202)
        elif not self.on_post(request):
            if request.message.get("method") == "initialize":
                answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": {"protocolVersion": 1}}
                request.reply(200, json.dumps(answer).encode(), Acp_Connection_Id="c-1", Set_Cookie="where=here")
            else:
                request.reply(202)
                self.posted.put_nowait(request)

    async def stream(self, scope=None):
        """Return the next stream that the client opens, which must have this scope."""
        got, stream = await self.streams.get()
        assert got == scope
        return stream


@asynccontextmanager
async def rough_server():
    server = RoughServer()
    tasks = set()

    async def handle(reader, writer):
        tasks.add(asyncio.current_task())
        await server.handle(reader, writer)

    async with asyncio.timeout(30):
        listening = await asyncio.start_server(handle, "127.0.0.1", 0)
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/acp"
        try:
            yield server
        finally:
            listening.close()
            for task in tasks:
                task.cancel()
            if tasks:
                await asyncio.wait(tasks)
