"""A client that is nothing but pipes: what a server writes is seen as it is."""

import json
import os
import selectors
import subprocess

PATIENCE_S = 30.0
"""For what takes milliseconds, on a machine that does much else."""

VERSION = "2025-06-18"


class RawClient:
    """A server as a child process, spoken to line by line."""

    def __init__(self, command, **options):
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(command, **pipes, **options)
        self.heard = []
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
        """Send a request and return the response; what comes before it is kept in `heard`."""
        return self.response(self.ask(method, **params))

    def response(self, request_id):
        """Return the response to this request; what comes before it is kept in `heard`."""
        return self.until(lambda message: "method" not in message and message["id"] == request_id)

    def until(self, fits):
        """Return the first message that fits; what comes before it is kept in `heard`."""
        while not fits(message := json.loads(self.line())):
            self.heard.append(message)
        return message

    def initialize(self):
        """Shake hands and return the result."""
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
        """Return the next line of stdout, with its end; at the end of stdout what is left."""
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
        """Tell whether nothing comes for so long, not even the end."""
        return not self._lines and not self._readable.select(seconds)

    def hang_up(self):
        """Close stdin."""
        self.process.stdin.close()

    def ended(self):
        """Wait for the end of the process; return its code and what it left on stderr."""
        code = self.process.wait(PATIENCE_S)
        return code, self.process.stderr.read().decode()
