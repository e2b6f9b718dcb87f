"""`tagging_agent.py [STORE]`: an agent for many sessions at once, which tags each chunk with its session.

A prompt is a JSON object. The agent sends `chunks` updates with `pad` characters each, numbered from `first`. They
start after `after_s` seconds and follow every `every_s` seconds. Before the numbers in `asks` it sends a permission
request. The text of a chunk is also JSON: its `session`, its number `n`, its time `at` (of the clock that all processes
share), and after a question the `answer`.

With STORE, a directory, it stores its chunks and can load sessions. It waits until an older agent leaves STORE.
"""

import fcntl
import heapq
import json
import os
import select
import sys
import time
from pathlib import Path

STORE = Path(sys.argv[1]) if len(sys.argv) > 1 else None
READ_BYTES = 1024 * 1024
BURST_BYTES = 64 * 1024


class Turn:
    def __init__(self, request_id, session, order):
        self.request_id = request_id
        self.session = session
        self.chunks = order["chunks"]
        self.pad = "x" * order.get("pad", 0)
        self.every_s = order.get("every_s", 0)
        self.asks = set(order.get("asks", ()))
        self.due = time.monotonic() + order.get("after_s", 0)
        self.number = order.get("first", 0)
        self.chunks += self.number
        self.answer = None

    def __lt__(self, other):
        return self.due < other.due


class Agent:
    def __init__(self):
        self.due = []
        self.asked = {}
        self.out = bytearray()
        self.sessions = 0

    def run(self):
        unread = b""
        while True:
            wait_s = max(0, self.due[0].due - time.monotonic()) if self.due else None
            if select.select([0], [], [], wait_s)[0]:
                data = os.read(0, READ_BYTES)
                if not data:
                    return
                *lines, unread = (unread + data).split(b"\n")
                for line in lines:
                    self.handle(json.loads(line))
            now = time.monotonic()
            while self.due and self.due[0].due <= now and len(self.out) < BURST_BYTES:
                self.step(heapq.heappop(self.due))
            self.flush()

    def flush(self):
        rest = memoryview(bytes(self.out))
        self.out.clear()
        while rest:
            rest = rest[os.write(1, rest) :]

    def write(self, **message):
        self.out += json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"

    def handle(self, message):
        match message.get("method"):
            case "initialize":
                capabilities = {"loadSession": STORE is not None}
                self.write(id=message["id"], result={"protocolVersion": 1, "agentCapabilities": capabilities})
            case "session/new":
                self.sessions += 1
                session = f"{os.getpid()}-{self.sessions}"
                if STORE is not None:
                    (STORE / session).touch()
                self.write(id=message["id"], result={"sessionId": session})
            case "session/load":
                self.load(message)
            case "session/prompt":
                order = json.loads(message["params"]["prompt"][0]["text"])
                heapq.heappush(self.due, Turn(message["id"], message["params"]["sessionId"], order))
            case None:
                self.answered(message)

    def load(self, message):
        path = STORE / message["params"]["sessionId"] if STORE is not None else None
        if path is None or not path.exists():
            self.write(id=message["id"], error={"code": -32002, "message": "there is no such session"})
            return
        *lines, torn = path.read_bytes().split(b"\n")
        if torn:
            path.write_bytes(b"".join(line + b"\n" for line in lines))
        for line in lines:
            self.out += line + b"\n"
        self.write(id=message["id"], result={})

    def step(self, turn):
        if turn.number == turn.chunks:
            self.write(id=turn.request_id, result={"stopReason": "end_turn"})
        elif turn.number in turn.asks:
            turn.asks.discard(turn.number)
            self.ask(turn)
        else:
            self.say(turn)
            turn.number += 1
            turn.due += turn.every_s
            heapq.heappush(self.due, turn)

    def say(self, turn):
        tag = {"session": turn.session, "n": turn.number, "at": time.monotonic_ns(), "answer": turn.answer}
        content = {"type": "text", "text": json.dumps(tag | {"pad": turn.pad})}
        update = {"sessionUpdate": "agent_message_chunk", "content": content}
        turn.answer = None
        start = len(self.out)
        self.write(method="session/update", params={"sessionId": turn.session, "update": update})
        if STORE is not None:
            with (STORE / turn.session).open("ab") as file:
                file.write(self.out[start:])

    def ask(self, turn):
        id_ = f"{turn.session}/{turn.number}"
        self.asked[id_] = turn
        options = [{"optionId": id_, "name": "Yes", "kind": "allow_once"}]
        params = {"sessionId": turn.session, "toolCall": {"toolCallId": id_, "title": id_}, "options": options}
        self.write(id=id_, method="session/request_permission", params=params)

    def answered(self, message):
        turn = self.asked.pop(message["id"])  # an answer to no question, or a second answer, ends this agent
        turn.answer = message["result"]["outcome"]["optionId"]
        heapq.heappush(self.due, turn)


if STORE is not None:
    fcntl.flock(os.open(STORE, os.O_RDONLY), fcntl.LOCK_EX)
Agent().run()
