"""`python -m tests.bridge.load.crowd`: many viewers on many sessions, each of which checks its own messages.

    speakers    open sessions, some of them two on one connection, send prompts and answer questions
    returners   are speakers whose connection is cut during a turn, and that reconnect with the last cursor
    idlers      load the one session with megabytes of messages, and never read

Every chunk must arrive once, in order and at the right viewer.
"""

import argparse
import json
import resource
import selectors
import statistics
import time
from pathlib import Path
from typing import NamedTuple

from tests.bridge.load.socket_viewer import CWD, SocketViewer

SELECT_TIMEOUT_S = 60
IDLE_RECEIVE_BYTES = 4096
LOUD_PAD = 100_000
NEWS = {"_dragoman/session", "_dragoman/agent", "_dragoman/settled", "$/cancel_request"}


class Plan(NamedTuple):
    sessions: int
    chunks: int = 20
    every_s: float = 0.5
    pad: int = 100
    returners: int = 0
    idlers: int = 0
    loud_chunks: int = 0

    def order(self, number):
        """Return the prompt of a session. All prompts arrive first, and their answers start slightly apart."""
        after_s = self.every_s * (1 + number / self.sessions)
        asks = [self.chunks // 2]
        return {"chunks": self.chunks, "every_s": self.every_s, "after_s": after_s, "pad": self.pad, "asks": asks}

    @property
    def loud_order(self):
        return {"chunks": self.loud_chunks, "every_s": self.every_s / 10, "pad": LOUD_PAD}


class Part:
    """A session as its only viewer must see it."""

    def __init__(self, order):
        self.order = order
        self.session = None
        self.next = 0
        self.asked = set()
        self.cursor = None
        self.is_over = False

    def check_update(self, params):
        """Check a chunk and return its time. Return None for the prompt and the title made from it."""
        if params["update"]["sessionUpdate"] == "session_info_update":
            return None
        text = json.loads(params["update"]["content"]["text"])
        if params["update"]["sessionUpdate"] == "user_message_chunk":
            assert text == self.order, f"the prompt of another session: {text}"
            return None
        assert text["session"] == self.session, f"a chunk of {text['session']} came to {self.session}"
        assert text["n"] == self.next, f"chunk {text['n']} came where {self.next} should"
        assert text["answer"] == (f"{self.session}/{self.next}" if self.next in self.asked else None), text
        assert len(text["pad"]) == self.order["pad"]
        self.next += 1
        return text["at"]

    @property
    def is_complete(self):
        return self.next == self.order["chunks"]


class Member:
    """One connection of the crowd."""

    marked = False

    def __init__(self, crowd, orders):
        self.crowd = crowd
        self.opening = [Part(order) for order in orders]
        self.parts = {}
        self.calls = {}
        self.connect()

    def connect(self):
        self.viewer = SocketViewer(self.crowd.url, self.crowd.token)
        self.viewer.initialize(marked=self.marked)
        self.crowd.selector.register(self.viewer.socket, selectors.EVENT_READ, self)

    def open(self):
        for part in self.opening:
            self.calls[self.viewer.call("session/new", cwd=CWD, mcpServers=[])] = part

    def speak(self):
        for part in self.parts.values():
            self.calls[self.viewer.prompt(part.session, part.order)] = part

    @property
    def is_open(self):
        return all(part.session for part in self.opening)

    @property
    def is_done(self):
        return all(part.is_over for part in self.parts.values())

    def read(self):
        for message in self.viewer.read():
            self.handle(message)

    def handle(self, message):
        method = message.get("method")
        if method is None:
            self.handle_answer(message)
        elif method == "session/update":
            self.check_update(message["params"])
        elif method == "session/request_permission":
            self.handle_question(message)
        else:
            assert method in NEWS, message
            assert self.marked or method == "$/cancel_request", message
            assert not message["params"].get("reset"), "the cursor did not fit"

    def handle_answer(self, message):
        assert "result" in message, message
        part = self.calls.pop(message["id"], None)
        if part is None:
            return  # initialize, load
        if part.session is None:
            part.session = message["result"]["sessionId"]
            assert part.session not in self.parts
            self.parts[part.session] = part
            return
        assert part.is_complete, f"the turn of {part.session} ended after chunk {part.next}"
        assert message["result"] == {"stopReason": "end_turn"}
        part.is_over = True

    def check_update(self, params):
        part = self.parts[params["sessionId"]]
        sent_at = part.check_update(params)
        if sent_at is not None:
            self.crowd.delays_ns.append(time.monotonic_ns() - sent_at)
        return part

    def handle_question(self, message):
        part = self.parts[message["params"]["sessionId"]]
        option = message["params"]["options"][0]["optionId"]
        assert option == f"{part.session}/{part.next}", option
        part.asked.add(part.next)
        self.viewer.send(id=message["id"], result={"outcome": {"outcome": "selected", "optionId": option}})


class Returner(Member):
    """A speaker whose connection is cut after some chunks of a turn, and that reconnects with its cursor."""

    marked = True

    def __init__(self, crowd, orders):
        chunks = orders[0]["chunks"]
        self.leaves_at = [chunks // 4, chunks // 2, chunks - 1]
        super().__init__(crowd, orders)

    def check_update(self, params):
        part = super().check_update(params)
        part.cursor = params["_meta"]["dragoman"]["cursor"]
        part.is_over = part.is_complete  # the answer to a prompt is lost with its connection
        return part

    def read(self):
        for message in self.viewer.read():
            self.handle(message)
            if any(self.leaves_at and part.next >= self.leaves_at[0] for part in self.parts.values()):
                self.leaves_at.pop(0)
                self.come_back()
                return  # other unread messages are lost with the connection

    def come_back(self):
        self.crowd.selector.unregister(self.viewer.socket)
        self.viewer.tear()
        self.calls.clear()
        self.connect()
        for part in self.parts.values():
            self.viewer.load(part.session, after=part.cursor)
        self.crowd.returns += 1


class Crowd:
    """All viewers of one bridge."""

    def __init__(self, url, token, pid, plan):
        self.url = url
        self.token = token
        self.pid = pid
        self.plan = plan
        self.selector = selectors.DefaultSelector()
        self.delays_ns = []
        self.returns = 0

    def run(self):
        """Run the plan and return the report. Raises AssertionError for a wrong message."""
        raise_file_limit()
        plan = self.plan
        warm = SocketViewer(self.url, self.token)
        warm.answer_to(warm.initialize())
        loud, idlers = self._begin_loud()
        before = read_rss_kib(self.pid)
        members = self._gather()
        idle = read_rss_kib(self.pid)
        started = time.monotonic()
        for member in [*members, *loud]:
            member.speak()
        self._read_until(lambda: all(member.is_done for member in members))
        seconds = time.monotonic() - started
        after = read_rss_kib(self.pid)
        self._read_until(lambda: all(member.is_done for member in loud))
        assert all(part.is_complete for member in members for part in member.parts.values())
        assert sum(len(member.parts) for member in members) == plan.sessions
        for member in loud:
            self._read_late(idlers.pop(), next(iter(member.parts.values())))
        for viewer in (warm, *idlers, *(member.viewer for member in (*members, *loud))):
            viewer.close()
        self.selector.close()
        delays = [delay / 1e6 for delay in self.delays_ns]
        *_, p99 = statistics.quantiles(delays, n=100)
        return {
            "sessions": plan.sessions,
            "connections": len(members),
            "returns": self.returns,
            "idlers": plan.idlers,
            "chunks": len(delays),
            "chunks_per_s": round(len(delays) / seconds),
            "delay_p50_ms": round(statistics.median(delays), 3),
            "delay_p99_ms": round(p99, 3),
            "delay_max_ms": round(max(delays), 3),
            "open_session_kib": round((idle - before) / plan.sessions, 2),
            "used_session_kib": round((after - before) / plan.sessions, 2),
        }

    def _begin_loud(self):
        if not self.plan.loud_chunks:
            return [], []
        loud = Member(self, [self.plan.loud_order])
        loud.open()
        self._read_until(lambda: loud.is_open)
        session = next(iter(loud.parts))
        idlers = [SocketViewer(self.url, self.token, receive_bytes=IDLE_RECEIVE_BYTES) for _ in range(self.plan.idlers)]
        for idler in idlers:
            idler.initialize()
            idler.load(session)
        return [loud], idlers

    def _gather(self):
        """Open all connections and then all sessions. Some sessions share a connection."""
        plan = self.plan
        orders = [plan.order(number) for number in range(plan.sessions)]
        members = [Returner(self, [orders.pop()]) for _ in range(plan.returners)]
        shared = len(orders) // 6
        members += [Member(self, [orders.pop(), orders.pop()]) for _ in range(shared)]
        members += [Member(self, [order]) for order in orders]
        for member in members:
            member.open()
        self._read_until(lambda: all(member.is_open for member in members))
        return members

    def _read_until(self, is_over):
        while not is_over():
            ready = self.selector.select(SELECT_TIMEOUT_S)
            assert ready, "nothing comes any more, and not all has come"
            for key, _ in ready:
                key.data.read()

    def _read_late(self, idler, part):
        """Check that a viewer that never read receives everything when it connects again."""
        idler.close()
        viewer = SocketViewer(self.url, self.token)
        viewer.initialize()
        late = Part(part.order)
        late.session = part.session
        for message in viewer.wait_for(viewer.load(part.session)):
            if message.get("method") == "session/update":
                late.check_update(message["params"])
        assert late.is_complete
        viewer.close()


def read_rss_kib(pid):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise AssertionError("it has no memory")


def raise_file_limit():
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("--token", required=True)
    parser.add_argument("--pid", type=int, required=True, help="the process whose memory is looked at")
    for name, kind in Plan.__annotations__.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, default=Plan._field_defaults.get(name, 1000))
    options = vars(parser.parse_args())
    crowd = Crowd(options.pop("url"), options.pop("token"), options.pop("pid"), Plan(**options))
    print(json.dumps(crowd.run()))


if __name__ == "__main__":
    main()
