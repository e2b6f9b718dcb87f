"""A scripted MCP server over HTTP: `python -I http.py '{"name": "weather"}' '{"authorization": "Bearer secret"}'`.

It serves streamable HTTP at `/mcp` and the older event stream at `/sse`, both with the options of `options.py`, on a
free loopback port. It prints `PORT n` when it listens, and exits with its stdin. Calls are answered by an event stream,
everything else by plain JSON. The second object configures the transport:

    authorization     the required header of every request (others get 401)
    status            the status of every response, with a readable text as its body
    redirect          a URL, or a working path on this server, to which all other requests are redirected by 307
    hang              accept requests and never answer
    garbage           answer 200 with an invalid message: html, json, event
    drop              close the connection without an end: `start` before any response, `call` during a call's response
    no_stream         405 for the GET of `/mcp`, like servers that never send their own messages
    port              the port to listen on, if it must be a particular one
    forget_after      drop the session after this many calls, with 404
    requests_file     a file for one line of JSON per request: method, path and headers
"""

import json
import os
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from urllib.parse import urlsplit

sys.path.insert(0, os.path.abspath(__file__).rsplit(os.sep, 4)[0])

from tests.mcp.servers import faults
from tests.mcp.servers.conversation import Conversation
from tests.mcp.servers.options import LIFETIME_S, Options

DEFAULTS = {
    "authorization": None,
    "status": None,
    "redirect": None,
    "hang": False,
    "garbage": None,
    "drop": None,
    "no_stream": False,
    "port": 0,
    "forget_after": None,
    "requests_file": None,
}

GARBAGE = {
    "html": ("text/html", b"<!doctype html><title>Sign in</title><p>Please sign in to go on.\n"),
    "json": ("application/json", b'{"jsonrpc": "2.0", "id": 1, "resu'),
    "event": ("text/event-stream", b"event: message\ndata: this is not a message\n\n"),
}

JSON = "application/json"
EVENTS = "text/event-stream"


class Session:
    """The state of one client: a conversation, and the streams for its messages."""

    def __init__(self, options, *, one_stream):
        self.id = uuid.uuid4().hex
        self.calls = 0
        self._streams = {}
        self._one_stream = one_stream
        self._unasked = Queue()
        self._listened = False
        self._conversation = Conversation(options, self)
        self.receive = self._conversation.receive

    def send(self, message, about):
        """Put a message on the stream of the request that it belongs to."""
        self._stream(about).put(_event(message))

    def send_half(self, message, about):
        """Put the first half of a message on its stream. Return when it is written."""
        event = _event(message)
        stream = self._stream(about)
        stream.put(event[: len(event) // 2])
        stream.join()

    def ask(self, message):
        """Process a request. Return the stream for its response and all messages that belong to it."""
        stream = self._streams[message["id"]] = Queue()
        self.receive(message)
        return stream

    def listen(self):
        """Return the stream for messages without a request. A later listener replaces it."""
        if self._listened:
            self._unasked = Queue()
        self._listened = True
        return self._unasked

    def _stream(self, about):
        return self._unasked if self._one_stream else self._streams.get(about, self._unasked)


def _event(message):
    return b"event: message\ndata: " + json.dumps(message).encode() + b"\n\n"


class Handler(BaseHTTPRequestHandler):
    """One request of a client."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # responses are small and written in two parts

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self._refused():
            return
        path = self._path()
        if path == "/mcp":
            self._post(json.loads(body))
        elif path == "/messages" and (session := self.server.sessions.get(urlsplit(self.path).query)):
            self._reply(202)
            session.receive(json.loads(body))
        else:
            self._reply(404)

    def do_GET(self):
        if self._refused():
            return
        path = self._path()
        if path == "/sse":
            self._open_sse()
        elif path != "/mcp":
            self._reply(404)
        elif self.server.way["no_stream"]:
            self._reply(405)
        elif session := self._session():
            events = session.listen()
            self._start_events()
            self._stream(events)

    def do_DELETE(self):
        if not self._refused() and (session := self._session()):
            del self.server.sessions[session.id]
            self._reply(200)

    def _post(self, message):
        session = self.server.open_session(one_stream=False) if message.get("method") == "initialize" else None
        session = session or self._session()
        if session is None:
            return
        if "method" not in message or "id" not in message:
            session.receive(message)
            self._reply(202)
        elif message["method"] == "tools/call":
            self._answer_call(session, message)
        else:
            event = session.ask(message).get()
            answer = event.partition(b"data: ")[2].strip()
            self._reply(200, JSON, answer, ("Mcp-Session-Id", session.id))

    def _answer_call(self, session, message):
        session.calls += 1
        if session.calls == self.server.way["forget_after"]:
            del self.server.sessions[session.id]
        self._start_events()
        if self.server.way["drop"] == "call":
            self._drop()
            return
        self._stream(session.ask(message), until=message["id"])

    def _open_sse(self):
        session = self.server.open_session(one_stream=True)
        self._start_events()
        endpoint = self.path.replace("/sse", f"/messages?{session.id}")
        self._chunk(f"event: endpoint\ndata: {endpoint}\n\n".encode())
        self._stream(session.listen())

    def _session(self):
        """Return the session of this request, or answer that it does not exist."""
        given = self.headers.get("Mcp-Session-Id")
        session = self.server.sessions.get(given)
        if session is None:
            self._reply(404 if given else 400)
        return session

    def _refused(self):
        """Return whether the options kept this request from the server."""
        way = self.server.way
        if way["requests_file"]:
            self._record(way["requests_file"])
        if way["hang"]:
            time.sleep(LIFETIME_S)
        if way["drop"] == "start":
            self._drop()
        elif way["authorization"] and self.headers.get("Authorization") != way["authorization"]:
            self._reply(401, "text/plain", b"who are you?", ("WWW-Authenticate", "Bearer"))
        elif way["status"]:
            self._reply(way["status"], "text/plain", b"not today")
        elif way["redirect"] and not self.path.startswith(way["redirect"]):
            self._reply(307, "text/plain", b"", ("Location", self._redirected(way["redirect"])))
        elif way["garbage"]:
            self._reply(200, *GARBAGE[way["garbage"]])
        else:
            return False
        return True

    def _redirected(self, where):
        return where + self.path if where.startswith("/") else where

    def _path(self):
        """Return the path without the prefix of a redirect."""
        return "/" + urlsplit(self.path).path.rpartition("/")[2]

    def _record(self, file):
        request = {"method": self.command, "path": self.path, "headers": dict(self.headers.items())}
        with open(file, "a") as lines:
            lines.write(json.dumps(request) + "\n")

    def _reply(self, status, content_type="text/plain", body=b"", *headers):
        self.send_response(status)
        for name, value in (("Content-Type", content_type), ("Content-Length", str(len(body))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _start_events(self):
        self.send_response(200)
        self.send_header("Content-Type", EVENTS)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _stream(self, events, until=None):
        """Write events until the response to a request, if one is named."""
        while True:
            event = events.get()
            self._chunk(event)
            events.task_done()
            if until is not None and _answers(event, until):
                self.wfile.write(b"0\r\n\r\n")
                return

    def _chunk(self, data):
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def _drop(self):
        self.close_connection = True

    def log_message(self, *_):
        pass


def _answers(event, request_id):
    """Return whether this is the response to that request. Half an event is not."""
    if not event.endswith(b"\n\n"):
        return False
    message = json.loads(event.partition(b"data: ")[2])
    return "method" not in message and message["id"] == request_id


class Server(ThreadingHTTPServer):
    """The sessions by id, and the options."""

    daemon_threads = True

    def __init__(self, options, way):
        super().__init__(("127.0.0.1", way.get("port", 0)), Handler)
        unknown = sorted(set(way) - set(DEFAULTS))
        if unknown:
            raise SystemExit(f"no such option: {', '.join(unknown)}")
        self.options = options
        self.way = {**DEFAULTS, **way}
        self.sessions = {}

    def open_session(self, *, one_stream):
        """Create a session for a new client."""
        session = Session(self.options, one_stream=one_stream)
        self.sessions[session.id] = session
        return session

    def handle_error(self, request, client_address):
        """Ignore clients that disconnect early."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def main():
    """Serve until stdin ends."""
    options, way = ([json.loads(argument) for argument in sys.argv[1:]] + [{}, {}])[:2]
    options = Options(options)
    faults.set_up(options)
    server = Server(options, way)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print("PORT", server.server_port, flush=True)
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main()
