"""Our agent in its own process, so that tests can kill it."""

import json
import signal
import subprocess
import sys


class AgentProcess:
    """`dragoman agent` in its own process, driven line by line."""

    def __init__(self, script, *, python=("-m", "dragoman")):
        self._process = subprocess.Popen(
            [sys.executable, *python, "agent", "--model", f"script:{script}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._last_id = 0
        self.send("initialize", protocolVersion=1)
        self.read()

    def send(self, method, **params):
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def read(self):
        return json.loads(self._process.stdout.readline())

    def answer(self):
        """Read until the answer to the last request."""
        while (message := self.read()).get("id") != self._last_id:
            pass
        return message["result"]

    def updates(self):
        """Yield the raw updates until the answer or the end of the process."""
        for line in self._process.stdout:
            message = json.loads(line) if line.endswith(b"\n") else {}
            if message.get("method") != "session/update":
                return
            if b"available_commands_update" not in line:
                yield line

    def kill(self):
        self._process.send_signal(signal.SIGKILL)

    def end(self):
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait(30)
