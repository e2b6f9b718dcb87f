"""One conversation with the agent under check. Every line of both sides is evidence."""

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

import msgspec

from dragoman.check.conversation import MAX_BYTES, FloodedError, Side
from dragoman.check.driver.client_services import ClientServices
from dragoman.check.driver.transport import ProbeTransport
from dragoman.check.judge import Judge
from dragoman.check.judge.message import Object, decode_object
from dragoman.check.judge.session import ALIVE
from dragoman.check.rules import RULES

DEATH_S = 1.0
"""Time from the end of an agent's stdout to the end of its process, if it is exiting."""

LATE_S = 0.2
"""Time to wait for messages after an answer that should be the last."""

ALIVE_S = 5.0
"""Time for an agent to answer a liveness request after it has left a request unanswered."""

ORPHAN_S = 3.0
"""Time for a child of the agent to notice that the agent has exited. Claude Code needs two seconds."""


class AgentGoneError(Exception):
    """The agent has exited. Its earlier messages are judged."""


class AgentAnswer(msgspec.Struct, frozen=True):
    """A response: a result or an error."""

    result: Any = None
    error: Any = None

    @property
    def ok(self) -> bool:
        """Return whether the response is a result."""
        return self.error is None

    @property
    def fields(self) -> Object:
        """The result, or an empty object if it is not an object."""
        return cast("Object", self.result) if isinstance(self.result, dict) else {}

    @property
    def code(self) -> int | None:
        """The code of the error."""
        code = cast("Object", self.error).get("code") if isinstance(self.error, dict) else None
        return code if isinstance(code, int) else None


PendingAnswer = asyncio.Future[AgentAnswer]


class ProbeConnection:
    """Acts as the client, and passes every line of both sides to the judge."""

    def __init__(
        self, transport: ProbeTransport, judge: Judge, services: ClientServices, tasks: asyncio.TaskGroup
    ) -> None:
        self.transport = transport
        self.services = services
        self.judge = judge
        self.updates: list[Object] = []
        self._calls: dict[Any, PendingAnswer] = {}
        self.last_id = 0
        """The id of the last request that was not sent with an explicit id."""
        self._alive: PendingAnswer | None = None
        """The pending answer to our last liveness request."""
        self._received_bytes = 0
        self._has_waited = False
        self._start_s = time.monotonic()
        self._activity = asyncio.Event()
        self._reader = tasks.create_task(self._read())

    @property
    def ended(self) -> bool:
        """Return whether the agent cannot send anything more."""
        return self._reader.done()

    @property
    def is_healthy(self) -> bool:
        """Return whether the agent runs, has answered everything in time, and has broken no rule so far."""
        has_broken = any(RULES[each.rule].side == "agent" for each in self.judge.findings)
        return not (self.ended or self._has_waited or self.services.held or has_broken)

    @property
    def is_silent(self) -> bool:
        """Return whether the agent has left a liveness request unanswered."""
        return self._alive is not None and not self._alive.done()

    def join(self, name: str) -> None:
        """Start another scene on this connection."""
        self.judge.conversation.name = name
        self.updates.clear()
        self.services.permission = "allow"
        self.services.pause_s = 0.0

    # ── sending ─────────────────────────────────────────────────────────────────────────────────

    def send(self, line: bytes) -> None:
        """Send a line unchanged."""
        self._record("client", line)
        self.transport.send(line + b"\n")

    def send_part(self, part: bytes) -> None:
        """Send the beginning of a line that is never finished."""
        self._record("client", part)
        self.transport.send(part)

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "method": method, "params": params}))

    def begin(self, method: str, params: Any, request_id: int | str | None = None) -> PendingAnswer:
        """Send a request. Await its answer with `finish`."""
        if request_id is None:
            self.last_id += 1
            request_id = self.last_id
        call: PendingAnswer = asyncio.get_running_loop().create_future()
        self._calls[request_id] = call
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}))
        return call

    def prompt(self, session_id: str, text: str) -> PendingAnswer:
        """Send a prompt. Await its answer with `finish`."""
        return self.begin("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": text}]})

    async def finish(self, call: PendingAnswer, timeout_s: float) -> AgentAnswer | None:
        """Wait for an answer. On a timeout record an event and return None. Raises AgentGoneError."""
        waiting = asyncio.ensure_future(asyncio.wait({call, self._reader}, return_when=asyncio.FIRST_COMPLETED))
        try:
            await asyncio.wait_for(waiting, timeout_s)
        except TimeoutError:
            self.record_event(f"waited {timeout_s:g}")
            return None
        if call.done():
            return call.result()
        if self.transport.has_process:
            self.record_event(await self.transport.exited(DEATH_S) or "stdout closed")
        raise AgentGoneError

    async def request(
        self, method: str, params: Any, timeout_s: float, request_id: int | str | None = None
    ) -> AgentAnswer | None:
        """Send a request and wait for its answer. On a timeout, send a liveness request."""
        reply = await self.finish(self.begin(method, params, request_id), timeout_s)
        if reply is None and (self._alive is None or self._alive.done()):
            self._alive = self.begin(ALIVE, {})
            await self.wait_until(self._alive.done, min(timeout_s, ALIVE_S))
        return reply

    def answer(self, request_id: Any, result: Any) -> None:
        """Answer a request of the agent."""
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "result": result}))

    def refuse(self, request_id: Any, code: int, message: str) -> None:
        """Answer a request of the agent with an error."""
        error = {"code": code, "message": message}
        self.send(msgspec.json.encode({"jsonrpc": "2.0", "id": request_id, "error": error}))

    # ── receiving ───────────────────────────────────────────────────────────────────────────────

    async def wait_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until a condition holds, checking it after every line. Return whether it holds."""
        try:
            async with asyncio.timeout(timeout_s):
                while not condition() and not self.ended:
                    self._activity.clear()
                    await self._activity.wait()
        except TimeoutError:
            pass
        return condition()

    async def listen(self) -> None:
        """Wait a moment for late messages."""
        await self.wait_until(lambda: False, LATE_S)

    def stop(self) -> None:
        """Stop reading."""
        self._reader.cancel()

    def record_event(self, event: str) -> None:
        """Record an event of the agent."""
        self._has_waited = self._has_waited or event.startswith("waited")
        self._record("agent", event=event)

    async def wait_for_exit(self, timeout_s: float) -> bool:
        """Wait for the end of the agent's process and record it. Return False if it still runs."""
        event = await self.transport.exited(timeout_s)
        self.record_event(event or f"waited {timeout_s:g}")
        return event is not None

    async def leave(self, timeout_s: float) -> bool:
        """Close the agent's stdin and wait for its exit. Return False if it must be killed."""
        self.record_event("stdin closed")
        self.transport.close_input()
        has_ended = await self.wait_for_exit(timeout_s)
        if not has_ended:
            self.record_event("killed")
        return has_ended

    async def record_orphans(self, others: int = 0) -> None:
        """Record the number of processes that the agent left behind. `others` is a count from elsewhere."""
        left = await self.transport.orphans(0.0 if others else ORPHAN_S)
        self.record_event(f"orphans {max(others, left)}")

    def _record(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        at_s = time.monotonic() - self._start_s
        self.judge.see(self.judge.conversation.add(sender, line, at_s, event))

    async def _read(self) -> None:
        while (line := await self.transport.read()) is not None:
            self._count_bytes(len(line) + 1)
            self._record("agent", line or b"\n")
            self._dispatch(line)
            self._activity.set()
        self._activity.set()

    def _count_bytes(self, count: int) -> None:
        self._received_bytes += count
        if self._received_bytes > MAX_BYTES:
            raise FloodedError(self.judge.conversation.name)

    def _dispatch(self, line: bytes) -> None:
        fields = decode_object(line)
        if fields is None:
            return
        method = fields.get("method")
        if not isinstance(method, str):
            self._receive_reply(fields)
        elif "id" in fields:
            self.services.handle(self, fields["id"], method, fields.get("params"))
        elif not isinstance(fields.get("params"), dict):
            return
        elif method == "session/update":
            self.updates.append(fields["params"])
        elif method == "$/cancel_request":
            self.services.withdraw(self, cast("Object", fields["params"]).get("requestId"))

    def _receive_reply(self, fields: Object) -> None:
        request_id = fields.get("id")
        call = self._calls.pop(request_id, None) if isinstance(request_id, int | str) else None
        if call is not None and not call.done():
            call.set_result(AgentAnswer(fields.get("result"), fields.get("error")))
