"""Interrupts turns at a chosen point and observes everything visible from outside.

A point is the k-th time that a task of the turn waits (`Steps`), or the k-th line that the agent sends (`Lines`). The
interruption arrives as a line from the client in the very next tick, so the turn cannot advance in between.
"""

import asyncio
import json
import os
from collections.abc import Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from dragoman.assistant import make_agent
from dragoman.assistant.setup import AgentSetup
from dragoman.errors import ConnectionClosedError
from dragoman.protocol.methods import SESSION_PROMPT
from dragoman.store import FileStore
from dragoman.testing import ScriptedClient
from dragoman.wire import memory_pair
from dragoman.wire.transport import HIGH_WATER_BYTES

_SLOW_TICKS = 4
"""Long enough for a cancellation to reach the turn's tasks while they wait to send."""


class Tap:
    """The agent's transport. Records every line, can insert lines and can break.

    With `slow`, the agent waits after each write, as with a client that does not keep up.
    """

    def __init__(self, inner, *, slow=False):
        self._inner = inner
        self._slow = slow
        self._receiver = None
        self.broken = False
        self.sent = []
        self.incoming = []
        self.on_line = lambda message: None

    @property
    def unsent_bytes(self):
        return HIGH_WATER_BYTES + 1 if self._slow else self._inner.unsent_bytes

    @property
    def can_write(self):
        return not self.broken and self._inner.can_write

    def start(self, receiver, tasks):
        self._receiver = receiver
        self._inner.start(self, tasks)

    def write(self, lines):
        if self.broken:
            return
        for line in bytes(lines).splitlines():
            self.sent.append(line)
            self.on_line(json.loads(line))
        self._inner.write(lines)

    async def drained(self):
        for _ in range(_SLOW_TICKS if self._slow else 0):
            await asyncio.sleep(0)
        await self._inner.drained()

    def pause_reading(self):
        self._inner.pause_reading()

    def resume_reading(self):
        self._inner.resume_reading()

    async def explain_end(self):
        return ConnectionClosedError("the tap was broken") if self.broken else await self._inner.explain_end()

    async def close(self):
        await self._inner.close()

    def lines_received(self, lines):
        if not self.broken:
            self.incoming += lines
            self._receiver.lines_received(lines)

    def input_ended(self, *, was_file):
        if not self.broken:
            self._receiver.input_ended(was_file=was_file)

    def put_in(self, method, **params):
        """Insert a line as if the client had sent it."""
        self.lines_received([json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()])

    def break_off(self):
        """Close the connection without a warning."""
        self.broken = True
        self._receiver.input_ended(was_file=False)

    def updates(self, start=0, end=None):
        """Return the updates of the conversation as they were sent."""
        updates = (line for line in self.sent[start:end] if b'"method":"session/update"' in line)
        return [line for line in updates if not any(kind in line for kind in _NOT_REPLAYED)]


_NOT_REPLAYED = (b'"available_commands_update"', b'"user_message_chunk"', b'"sessionUpdate":"notice"')


class Points:
    """Counts the points of a turn and acts at the chosen one. `reached` tells whether it came."""

    def __init__(self, chosen):
        self._chosen = chosen
        self._counted = 0
        self._act = None
        self.reached = False

    def arm(self, tap, act):
        self._act = act

    def disarm(self):
        self._act = None

    def _count(self):
        if self._act is None or self.reached:
            return
        self._counted += 1
        if self._counted > self._chosen:
            self.reached = True
            asyncio.get_running_loop().call_soon(self._act)


class Lines(Points):
    """Each line that the agent sends is a point."""

    def arm(self, tap, act):
        super().arm(tap, act)
        tap.on_line = lambda message: self._count()


class Steps(Points):
    """Each wait of the task that answers the prompt, or of its child tasks, is a point."""

    def __init__(self, chosen):
        super().__init__(chosen)
        self._tasks = set()

    def arm(self, tap, act):
        super().arm(tap, act)
        asyncio.get_running_loop().set_task_factory(self._make_task)

    def disarm(self):
        super().disarm()
        asyncio.get_running_loop().set_task_factory(None)

    def _make_task(self, loop, coroutine, **options):
        if not (_is_prompt(coroutine) or asyncio.current_task() in self._tasks):
            return asyncio.Task(coroutine, loop=loop, **options)
        task = asyncio.Task(_Stepped(coroutine, self._count), loop=loop, **options)
        self._tasks.add(task)
        return task


def _is_prompt(coroutine):
    frame = getattr(coroutine, "cr_frame", None)
    request = frame.f_locals.get("request") if frame is not None else None
    return getattr(request, "method", None) == SESSION_PROMPT.name


class _Stepped(Coroutine):
    """Wraps a coroutine and calls back each time that it waits."""

    def __init__(self, inner, on_wait):
        self._inner = inner
        self._on_wait = on_wait

    def send(self, value):
        awaited = self._inner.send(value)
        self._on_wait()
        return awaited

    def throw(self, *error):
        awaited = self._inner.throw(*error)
        self._on_wait()
        return awaited

    def close(self):
        self._inner.close()

    def __await__(self):
        return self._inner.__await__()


class Run:
    """One interrupted turn, and the state when its prompt was answered."""

    def __init__(self, tap, session_id, marker):
        self.tap = tap
        self.session_id = session_id
        self.stop_reason = None
        self.left_running = []
        self.unanswered = []
        self._marker = marker
        self._answered_at = None
        self._on_line, tap.on_line = tap.on_line, self._observe

    @property
    def updates(self):
        """The updates of the turn."""
        return self.tap.updates(end=self._answered_at)

    @property
    def later_updates(self):
        """The updates after the answer."""
        return self.tap.updates(self._answered_at)

    def _observe(self, message):
        reason = message.get("result", {}).get("stopReason")
        if reason is not None and self.stop_reason is None:
            self.stop_reason = reason
            self._answered_at = len(self.tap.sent)
            self.left_running = running(self._marker)
            self.unanswered = _unanswered(self.tap)
        self._on_line(message)


def _unanswered(tap):
    """Return the methods of requests to the client that were neither answered nor cancelled."""
    sent = [json.loads(line) for line in tap.sent]
    settled = {message["id"] for message in map(json.loads, tap.incoming) if "method" not in message}
    settled |= {message["params"]["requestId"] for message in sent if message.get("method") == "$/cancel_request"}
    return [
        message["method"] for message in sent if {"id", "method"} <= message.keys() and message["id"] not in settled
    ]


def running(marker):
    """Return our descendants with the marker in their command."""
    return [pid for pid in descendants() if marker in _read(pid, "cmdline")]


def descendants():
    """Return all running descendants."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        state, parent, *_ = _read(pid, "stat").rpartition(")")[2].split() or ("Z", "0")
        if state != "Z":
            parents[int(pid)] = int(parent)
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {os.getpid()}


def _read(pid, name):
    with suppress(OSError):
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    return ""


@asynccontextmanager
async def tapped_agent(home, model, *, slow=False, set_up=lambda routes: None, **options):
    """Run our agent with a tap and a scripted client. The client may end before the agent."""
    near, far = memory_pair()
    tap = Tap(far, slow=slow)
    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        tasks.create_task(make_agent(lambda: FileStore(home), lambda: AgentSetup(home, model=model)).serve(tap))
        client = ScriptedClient(near, **options)
        set_up(client.routes)
        async with client:
            await client.initialize()
            yield client, tap
