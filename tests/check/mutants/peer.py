"""The common part of the clean agent and client: incoming lines, outgoing lines, and the breach.

It only uses the standard library, so the peers are independent of the checker and start quickly.
"""

import json
import os
import queue
import re
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

Object = dict[str, Any]
Edit = Callable[[Object], Any]

ANSWER_TIMEOUT_S = 20.0
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602


class Refused(Exception):
    """The answer to a request is an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        self.code = code
        self.data = data
        super().__init__(message)


class Lines(NamedTuple):
    """A breach in sent messages. `edit` changes a message, or returns one or several messages to send instead.

    `about` is a pattern for the kind of message and its method: `result session/new`, `update tool_call`.
    """

    about: str
    edit: Edit


class Overrides(NamedTuple):
    """A breach in behaviour: methods of the peer that are replaced, by name."""

    methods: dict[str, Callable[..., Any]]


Breach = Lines | Overrides


def override(**methods: Callable[..., Any]) -> Overrides:
    """Replace methods of the peer."""
    return Overrides(methods)


class Peer:
    """One side of a conversation."""

    def __init__(self, write_fd: int, breach: Breach | None) -> None:
        self._write_fd = write_fd
        self._lines = breach if isinstance(breach, Lines) else None
        self._waiting: dict[Any, queue.Queue[Object]] = {}
        self._ids = 0
        self.lock = threading.RLock()
        if isinstance(breach, Overrides):
            for name, method in breach.methods.items():
                if not hasattr(self, name):
                    raise AttributeError(f"there is no method {name} to break")
                setattr(self, name, method.__get__(self))

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    def send(self, about: str, message: Object) -> None:
        """Send a message, changed by the breach if it matches."""
        sent: Any = message
        if self._lines is not None and re.fullmatch(self._lines.about, about):
            changed = self._lines.edit(message)
            sent = message if changed is None else changed
        written = b"".join(_line(each) for each in (sent if isinstance(sent, list) else [sent]))
        with self.lock:
            while written:
                written = written[os.write(self._write_fd, written) :]

    def notify(self, method: str, params: Object) -> None:
        self.send(f"notification {method}", {"jsonrpc": "2.0", "method": method, "params": params})

    def next_id(self) -> Any:
        self._ids += 1
        return self._ids

    def begin(self, method: str, params: Object) -> "queue.Queue[Object]":
        request_id = self.next_id()
        answer = self._waiting.setdefault(request_id, queue.Queue())
        self.send(f"request {method}", {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return answer

    def ask(self, method: str, params: Object) -> Object:
        """Send a request and return the result, or an empty object for an error."""
        return _result(self.begin(method, params).get(timeout=ANSWER_TIMEOUT_S))

    def ask_at_once(self, requests: list[tuple[str, Object]]) -> list[Object]:
        """Send requests concurrently and return their results."""
        answers = [self.begin(*each) for each in requests]
        return [_result(each.get(timeout=ANSWER_TIMEOUT_S)) for each in answers]

    def result(self, request_id: Any, method: str, result: Any) -> None:
        self.send(f"result {method}", {"jsonrpc": "2.0", "id": request_id, "result": result})

    def error(self, request_id: Any, method: str, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message} | ({} if data is None else {"data": data})
        self.send(f"error {method}", {"jsonrpc": "2.0", "id": request_id, "error": error})

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    def receive(self, line: bytes) -> None:
        """Process one line from the other side."""
        try:
            message = json.loads(line)
        except ValueError:
            self.handle_garbage(line)
            return
        if not isinstance(message, dict) or ("method" not in message and not {"result", "error"} & message.keys()):
            self.handle_garbage(line)
        elif "method" not in message:
            self.handle_answer(message)
        elif "id" in message:
            self.handle_request(message["id"], message["method"], message.get("params"))
        else:
            self.handle_notification(message["method"], message.get("params") or {})

    def handle_answer(self, message: Object) -> None:
        waiting = self._waiting.get(message.get("id"))
        if waiting is not None:
            waiting.put(message)

    def handle_garbage(self, line: bytes) -> None:
        raise NotImplementedError

    def handle_request(self, request_id: Any, method: str, params: Any) -> None:
        raise NotImplementedError

    def handle_notification(self, method: str, params: Object) -> None:
        raise NotImplementedError


def _result(message: Object) -> Object:
    result = message.get("result")
    return result if isinstance(result, dict) else {}


def _line(message: Object | bytes) -> bytes:
    return message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode() + b"\n"
