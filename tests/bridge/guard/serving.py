"""A bridge in a child process, and raw requests to it."""

import base64
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dragoman.testing import dump_turns, steps

TIMEOUT_S = 30


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name):
        return next((value for key, value in self.headers if key == name), None)

    def all(self, name):
        return [value for key, value in self.headers if key == name]


class Served(NamedTuple):
    """A running `dragoman serve --json`."""

    process: subprocess.Popen
    url: str
    acp: str
    token: str
    home: Path
    err: list[str]

    @property
    def port(self):
        return int(self.acp.split(":")[2].partition("/")[0])

    @property
    def host(self):
        return f"127.0.0.1:{self.port}"

    @property
    def origin(self):
        return f"http://{self.host}"

    @property
    def bearer(self):
        return f"Authorization: Bearer {self.token}"

    @property
    def stderr(self):
        return "".join(self.err)

    def ask(self, line, *headers, body=b"", host=None):
        """Send a raw request and return the answer."""
        host_lines = [f"Host: {self.host if host is None else host}"] if host != "" else []
        length = [f"Content-Length: {len(body)}"] if body else []
        lines = [f"{line} HTTP/1.1", *host_lines, *headers, *length, "Connection: close", "", ""]
        return send_raw(self.port, "\r\n".join(lines).encode("latin-1") + body)

    def upgrade(self, *headers, path="/acp", host=None):
        """Request a WebSocket and return the answer."""
        lines = [
            f"GET {path} HTTP/1.1",
            f"Host: {host or self.host}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            *headers,
            "",
            "",
        ]
        return send_raw(self.port, "\r\n".join(lines).encode("latin-1"), to_end=False)

    def log_in(self):
        """Use the printed link and return the cookie."""
        answer = self.ask(f"GET {self.url.removeprefix(self.origin)}")
        assert answer.status == 303, answer
        return answer.header("set-cookie").partition(";")[0]

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(TIMEOUT_S)


def send_raw(port, data, *, to_end=True):
    """Send bytes and return the answer up to the end of the connection or of the headers."""
    with socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection:
        connection.sendall(data)
        return read_answer(connection, to_end=to_end)


def read_answer(connection, *, to_end=True):
    got = b""
    while to_end or b"\r\n\r\n" not in got:
        piece = connection.recv(65536)
        if not piece:
            break
        got += piece
    head, _, body = got.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    headers = [(name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest)]
    return Answer(int(first.split()[1]), headers, body)


def scripted(*turns):
    turns = turns or ([steps.Say("hello")],)
    return [sys.executable, "-m", "dragoman.testing", dump_turns(list(turns))]


@contextmanager
def serving(home, *options, agent=None, port=0, through=(), **variables):
    """Run `dragoman serve --json` with a scripted agent, another one, or `()` for our own.

    `through` is a prefix for the command.
    """
    command = [*through, sys.executable, "-m", "dragoman", "serve", "--format", "json", "--port", str(port), *options]
    agent = scripted() if agent is None else agent
    process = subprocess.Popen(
        [*command, *(["--", *agent] if agent else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "DRAGOMAN_HOME": str(home), **variables},
    )
    err = []
    reader = threading.Thread(target=lambda: err.extend(process.stderr), daemon=True)
    reader.start()
    try:
        line = process.stdout.readline()
        assert line, f"it ended with {process.wait(TIMEOUT_S)}: {reader.join(TIMEOUT_S)}{''.join(err)}"
        yield Served(process, home=Path(home), err=err, **json.loads(line))
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(TIMEOUT_S)
        reader.join(TIMEOUT_S)
        process.stdout.close()
        process.stderr.close()
