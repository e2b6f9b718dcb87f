"""Very cheap WebSocket clients, so that only the server is timed. Prints one JSON object.

    ws_client.py URL [--token TOKEN] [--protocol 1|2] [--chunks N --size BYTES] [--roundtrips R] [--ticks T]
                 [--viewers V [--viewers-url URL --viewers-token TOKEN]]

The first connection creates a session and sends the prompts. With `--viewers`, more connections load the session and
only read, from another server if one is named. With `--ticks`, the time from sending an update in the agent to its
arrival is measured. Frames are split from the socket's bytes and only counted.
"""

import argparse
import base64
import json
import os
import re
import selectors
import socket
import statistics
from collections.abc import Callable
from time import monotonic_ns, perf_counter
from typing import Any
from urllib.parse import urlsplit

READ_BYTES = 256 * 1024
TIMEOUT_S = 120
WARM_UP_CHUNKS = 100
WARM_UP_ROUNDTRIPS = 20
UPDATE = b'"method":"session/update"'
CHUNK = b'"agent_message_chunk"'
HEAD_BYTES = 60
CHUNK_HEAD_BYTES = 200
TICK = re.compile(rb"<(\d+)>")
CWD = "/"


class Viewer:
    """One connection."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 80), TIMEOUT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = [
            f"GET {parts.path or '/'} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
        ]
        if token:
            headers.append(f"Authorization: Bearer {token}")
        self.socket.sendall("\r\n".join([*headers, "", ""]).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += self._receive()
        status, _, rest = head.partition(b"\r\n")
        if b" 101" not in status:
            raise RuntimeError(f"no WebSocket: {status.decode()}")
        self._held = rest.partition(b"\r\n\r\n")[2]
        self.updates = 0
        self.counted, self.head_bytes, self.answers = UPDATE, HEAD_BYTES, b""
        """The bytes near the beginning of counted messages, and the bytes near the beginning of all others."""
        self.answer: bytes | None = None
        """The last message that was not an update."""
        self.on_update: Callable[[bytes], None] | None = None

    def _receive(self) -> bytes:
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise RuntimeError("the server has closed the connection")
        return data

    def send(self, method: str, params: Any) -> None:
        """Send a request in a frame that is masked with zeros, which changes nothing."""
        data = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + len(data).to_bytes(2, "big")
        self.socket.sendall(b"\x81" + size + bytes(4) + data)

    def read(self) -> None:
        """Receive the available bytes."""
        held = self._held + self._receive()
        at, end = 0, len(held)
        while end - at >= 2:
            size, begin = held[at + 1], at + 2
            if size == 126:
                size, begin = int.from_bytes(held[at + 2 : at + 4], "big"), at + 4
            elif size == 127:
                size, begin = int.from_bytes(held[at + 2 : at + 10], "big"), at + 10
            if end < begin + size:
                break
            if held.find(self.counted, begin, begin + self.head_bytes) >= 0:
                self.updates += 1
                if self.on_update is not None:
                    self.on_update(held[begin : begin + size])
            elif held[at] & 0x0F == 1 and held.find(self.answers, begin, begin + HEAD_BYTES) >= 0:
                self.answer = held[begin : begin + size]
            at = begin + size
        self._held = held[at:]

    def call(self, method: str, params: Any) -> Any:
        """Send a request and wait for its response."""
        self.answer = None
        self.send(method, params)
        while self.answer is None or b'"id":1' not in self.answer:
            self.read()
        reply = json.loads(self.answer)
        if "error" in reply:
            raise RuntimeError(f"{method} was refused: {reply['error']}")
        return reply["result"]

    def initialize(self, protocol: int = 1) -> None:
        version_1 = {"protocolVersion": 1, "clientCapabilities": {}}
        version_2 = {"protocolVersion": 2, "info": {"name": "bench", "version": "1"}, "capabilities": {}}
        self.call("initialize", version_1 if protocol == 1 else version_2)

    def count_chunks(self) -> None:
        """Count only chunks, because the protocol versions differ in the other updates of a turn."""
        self.counted, self.head_bytes, self.answers = CHUNK, CHUNK_HEAD_BYTES, b'"id":1'

    def read_until(self, updates: int) -> None:
        while self.updates < updates:
            self.read()


def prompt(session_id: str, order: dict[str, Any]) -> dict[str, Any]:
    return {"sessionId": session_id, "prompt": [{"type": "text", "text": json.dumps(order)}]}


def time_stream(viewer: Viewer, session_id: str, order: dict[str, Any]) -> dict[str, Any]:
    viewer.call("session/prompt", prompt(session_id, order | {"chunks": WARM_UP_CHUNKS}))
    viewer.updates = 0
    started = perf_counter()
    viewer.call("session/prompt", prompt(session_id, order))
    seconds = perf_counter() - started
    return {"chunks_received": viewer.updates, "chunks_per_s": viewer.updates / seconds}


def time_chunks(viewer: Viewer, session_id: str, order: dict[str, Any]) -> dict[str, Any]:
    """Time a stream to its last chunk, in either version."""
    viewer.count_chunks()
    seconds = 0.0
    for chunks in (WARM_UP_CHUNKS, order["chunks"]):
        viewer.updates = 0
        started = perf_counter()
        viewer.call("session/prompt", prompt(session_id, order | {"chunks": chunks}))
        viewer.read_until(chunks)
        seconds = perf_counter() - started
    return {"chunks_received": viewer.updates, "chunks_per_s": viewer.updates / seconds}


def time_roundtrips(viewer: Viewer, session_id: str, count: int) -> dict[str, Any]:
    seconds: list[float] = []
    for _ in range(count + WARM_UP_ROUNDTRIPS):
        started = perf_counter()
        viewer.call("session/prompt", prompt(session_id, {}))
        seconds.append(perf_counter() - started)
    return {"roundtrip_p50_s": statistics.median(seconds[WARM_UP_ROUNDTRIPS:])}


def time_ticks(viewer: Viewer, session_id: str, count: int) -> dict[str, Any]:
    """Time updates from the agent to this process, by the clock that both processes share."""
    taken_ns: list[int] = []

    def see(update: bytes) -> None:
        if found := TICK.search(update):
            taken_ns.append(monotonic_ns() - int(found[1]))

    viewer.on_update = see
    viewer.call("session/prompt", prompt(session_id, {"ticks": count + WARM_UP_ROUNDTRIPS}))
    return {"update_p50_s": statistics.median(taken_ns[WARM_UP_ROUNDTRIPS:]) / 1e9}


def time_fan_out(speaker: Viewer, others: list[Viewer], session_id: str, order: dict[str, Any]) -> dict[str, Any]:
    """Time one prompt until every viewer has all of its chunks."""
    everybody = [speaker, *others]
    for viewer in everybody:
        viewer.count_chunks()
        viewer.updates = 0
    with selectors.DefaultSelector() as selector:
        for viewer in everybody:
            selector.register(viewer.socket, selectors.EVENT_READ, viewer)
        started = perf_counter()
        speaker.send("session/prompt", prompt(session_id, order))
        waiting = set(everybody)
        while waiting:
            ready = selector.select(TIMEOUT_S)
            if not ready:
                raise RuntimeError(f"{len(waiting)} viewers wait in vain")
            for key, _ in ready:
                key.data.read()
                if key.data.updates >= order["chunks"]:
                    waiting.discard(key.data)
        seconds = perf_counter() - started
    received = sum(viewer.updates for viewer in everybody)
    return {"chunks_received": received, "chunks_per_s": received / seconds}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--token")
    parser.add_argument("--protocol", type=int, help="time chunks alone, as a client of this version")
    parser.add_argument("--chunks", type=int, default=0)
    parser.add_argument("--size", type=int, default=40)
    parser.add_argument("--roundtrips", type=int, default=0)
    parser.add_argument("--ticks", type=int, default=0)
    parser.add_argument("--viewers", type=int, default=0)
    parser.add_argument("--viewers-url")
    parser.add_argument("--viewers-token")
    options = parser.parse_args()
    viewer = Viewer(options.url, options.token)
    viewer.initialize(options.protocol or 1)
    session_id = viewer.call("session/new", {"cwd": CWD, "mcpServers": []})["sessionId"]
    order = {"size": options.size, "chunks": options.chunks}
    if options.protocol:
        report = time_chunks(viewer, session_id, order)
    elif options.roundtrips:
        report = time_roundtrips(viewer, session_id, options.roundtrips)
    elif options.ticks:
        report = time_ticks(viewer, session_id, options.ticks)
    elif options.viewers:
        url, token = options.viewers_url or options.url, options.viewers_token or options.token
        others = [Viewer(url, token) for _ in range(options.viewers)]
        for other in others:
            other.initialize()
            other.call("session/load", {"sessionId": session_id, "cwd": CWD, "mcpServers": []})
        report = time_fan_out(viewer, others, session_id, order)
    else:
        report = time_stream(viewer, session_id, order)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
