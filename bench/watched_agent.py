"""An agent process whose messages are all read, even unrequested ones."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from bench.raw_agent import READ_BYTES, RawAgent

SERVERS_KEY = "dragoman/mcp"


class WatchedAgent(RawAgent):
    """A started agent whose output is read line by line, so that nothing after a response is lost."""

    _unread = b""

    def call_watching(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a request and return its result. Raises RuntimeError if it is refused."""
        request = self.send(method, params)
        while (message := self.read_message()).get("id") != request:
            pass
        if "error" in message:
            raise RuntimeError(f"{self._command[0]} refused {method}: {message['error']}")
        return message["result"]

    def send(self, method: str, params: Mapping[str, Any]) -> int:
        """Send a request and return its ID."""
        assert self._process.stdin is not None
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        os.write(self._process.stdin.fileno(), msgspec.json.encode(request) + b"\n")
        return self._last_id

    def open_session(self, cwd: str, servers: Sequence[Mapping[str, Any]]) -> str:
        """Create a session and return its ID as soon as it is answered."""
        return self.call_watching("session/new", {"cwd": cwd, "mcpServers": servers})["sessionId"]

    def open_ready_session(self, cwd: str, servers: Sequence[Mapping[str, Any]]) -> str:
        """Create a session and return its ID once all its servers are ready. Raises RuntimeError if one fails."""
        answer = self.call_watching("session/new", {"cwd": cwd, "mcpServers": servers})
        states = answer["_meta"][SERVERS_KEY]
        while any(state["state"] == "connecting" for state in states):
            update = self.read_message().get("params", {}).get("update", {})
            states = update.get("_meta", {}).get(SERVERS_KEY, states)
        for state in states:
            if state["state"] != "ready" or not state["tools"]:
                raise RuntimeError(f"a server has no tools: {state}")
        return answer["sessionId"]

    def read_message(self) -> dict[str, Any]:
        """Wait for the next message."""
        assert self._process.stdout is not None
        blocks = [self._unread]
        while b"\n" not in blocks[-1]:
            blocks.append(os.read(self._process.stdout.fileno(), READ_BYTES))
            if not blocks[-1]:
                raise RuntimeError(f"{self._command[0]} ended")
        line, _, self._unread = b"".join(blocks).partition(b"\n")
        return msgspec.json.decode(line)
