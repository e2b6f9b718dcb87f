"""A client that only consists of pipes, so a server's output is seen unchanged."""

import json
import os
import selectors
import subprocess

PATIENCE_S = 30.0
"""Timeout for actions of milliseconds, on a busy machine."""

VERSION = "2025-06-18"


class RawClient:
    """A server as a child process. Messages are exchanged line by line."""

    def __init__(self, command, **options):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, **pipes, **options)
        self.received = []
        self._readable = selectors.DefaultSelector()
        self._readable.register(self.process.stdout, selectors.EVENT_READ)
        self._lines = []
        self._rest = []
        self._last_id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._readable.close()
        self.process.kill()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            pipe.close()
        self.process.wait()

    def send(self, **message):
        """Write one message."""
        os.write(self.process.stdin.fileno(), json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method, **params):
        """Send a request and return its id."""
        self._last_id += 1
        self.send(id=self._last_id, method=method, params=params)
        return self._last_id

    def request(self, method, **params):
        """Send a request and return the response. Earlier messages are kept in `received`."""
        return self.response(self.ask(method, **params))

    def response(self, request_id):
        """Return the response to a request. Earlier messages are kept in `received`."""
        return self.until(lambda message: "method" not in message and message["id"] == request_id)

    def until(self, fits):
        """Return the first message that fits. Earlier messages are kept in `received`."""
        while not fits(message := json.loads(self.line())):
            self.received.append(message)
        return message

    def initialize(self):
        """Initialize and return the result."""
        client = {"name": "raw", "version": "1"}
        response = self.request("initialize", protocolVersion=VERSION, capabilities={}, clientInfo=client)
        self.send(method="notifications/initialized")
        return response["result"]

    def call(self, tool="echo", **arguments):
        """Call a tool and return the result."""
        return self.request("tools/call", name=tool, arguments=arguments)["result"]

    def tools(self):
        """Return the names of all tools, page by page."""
        names, page = [], self.request("tools/list")["result"]
        while cursor := page.get("nextCursor"):
            names += [tool["name"] for tool in page["tools"]]
            page = self.request("tools/list", cursor=cursor)["result"]
        return names + [tool["name"] for tool in page["tools"]]

    def line(self):
        """Return the next line of stdout with its end, or the rest at the end of stdout."""
        while not self._lines:
            assert self._readable.select(PATIENCE_S), "nothing came"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            self._rest.append(data)
            if not data or b"\n" in data:
                *self._lines, rest = b"".join(self._rest).split(b"\n")
                self._lines = [line + b"\n" for line in self._lines]
                self._rest = [rest]
            if not data:
                self._lines += self._rest
                self._rest = []
        return self._lines.pop(0)

    def is_quiet(self, seconds):
        """Return whether nothing arrives for this long, not even the end."""
        return not self._lines and not self._readable.select(seconds)

    def hang_up(self):
        """Close stdin."""
        self.process.stdin.close()

    def ended(self):
        """Wait for the exit of the process. Return its code and its remaining stderr."""
        code = self.process.wait(PATIENCE_S)
        return code, self.process.stderr.read().decode()
