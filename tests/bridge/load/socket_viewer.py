"""A cheap viewer on a bare WebSocket, so that thousands fit into a test. Its connection can be cut at will."""

import base64
import json
import os
import socket
import struct
from itertools import count
from urllib.parse import urlsplit

READ_BYTES = 256 * 1024
TIMEOUT_S = 60
CWD = "/"
MARKED = {"_meta": {"dragoman": {"viewer": 1}}}


class Closed(Exception):
    """The bridge has closed the connection."""


class SocketViewer:
    """One connection, with blocking reads by default."""

    def __init__(self, url, token, *, receive_bytes=None):
        parts = urlsplit(url)
        self.socket = socket.socket()
        self.socket.settimeout(TIMEOUT_S)
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.connect((parts.hostname, parts.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ids = count(1)
        self._unread = b""
        self._fragments = b""
        self._upgrade(parts, token)

    def _upgrade(self, parts, token):
        lines = [
            f"GET {parts.path} HTTP/1.1",
            f"Host: {parts.netloc}",
            "Upgrade: websocket",
            "Connection: Upgrade",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}",
            "Sec-WebSocket-Version: 13",
            f"Authorization: Bearer {token}",
        ]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._unread:
            self._receive()
        head, _, self._unread = self._unread.partition(b"\r\n\r\n")
        assert b" 101 " in head.split(b"\r\n")[0], head.decode()

    def _receive(self):
        try:
            data = self.socket.recv(READ_BYTES)
        except ConnectionError as error:
            raise Closed(str(error)) from error
        if not data:
            raise Closed("the connection ended")
        self._unread += data

    def send(self, **message):
        self._send_frame(1, json.dumps({"jsonrpc": "2.0", **message}).encode())

    def call(self, method, **params):
        """Send a request and return its id."""
        number = next(self._ids)
        self.send(id=number, method=method, params=params)
        return number

    def initialize(self, *, marked=False):
        return self.call("initialize", protocolVersion=1, clientCapabilities=MARKED if marked else {})

    def load(self, session, *, after=None):
        meta = {} if after is None else {"_meta": {"dragoman": {"after": after}}}
        return self.call("session/load", sessionId=session, cwd=CWD, mcpServers=[], **meta)

    def prompt(self, session, order):
        return self.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": json.dumps(order)}])

    def _send_frame(self, opcode, data):
        """Send a frame masked with zeros, which leaves the bytes unchanged."""
        size = len(data)
        head = struct.pack("!BB", 0x80 | opcode, 0x80 | size) if size < 126 else struct.pack("!BBH", 0x81, 0xFE, size)
        self.socket.sendall(head + bytes(4) + data)

    def read(self):
        """Read once and return the received messages. Raises Closed."""
        self._receive()
        held, at, end = self._unread, 0, len(self._unread)
        messages = []
        while end - at >= 2:
            opcode, size, begin = held[at] & 0x0F, held[at + 1], at + 2
            if size >= 126:
                width = 2 if size == 126 else 8
                size, begin = int.from_bytes(held[begin : begin + width], "big"), begin + width
            if end < begin + size:
                break
            at = begin + size
            self._read_frame(opcode, held[begin:at], messages)
        self._unread = held[at:]
        return messages

    def _read_frame(self, opcode, data, messages):
        if opcode == 1:
            messages.append(json.loads(data))
        elif opcode == 8:
            raise Closed(data[2:].decode())
        elif opcode == 9:
            self._send_frame(10, data)
        else:
            raise AssertionError(f"a frame of kind {opcode} came")

    def wait_for(self, number):
        """Read up to the answer to a request and return all messages."""
        taken = []
        while not any(one.get("id") == number and "method" not in one for one in taken):
            taken += self.read()
        return taken

    def answer_to(self, number):
        answer = next(one for one in self.wait_for(number) if one.get("id") == number and "method" not in one)
        assert "result" in answer, answer
        return answer["result"]

    def close(self):
        self.socket.close()

    def tear(self):
        """Cut the connection without a close frame, like a network failure."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()
