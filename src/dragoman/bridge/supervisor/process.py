"""One life of the agent: a process, the lines on its pipes, the requests that it has not answered, and its end."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from dragoman.bridge.settings import AgentLimits, AgentSpec
from dragoman.errors import ConnectionClosed, ProcessDied
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.wire import Message, Oversized, Receiver, StdioTransport
from dragoman.wire.framing import BlockSplitter

LAST_UNSENT_S = 0.3
"""When the bridge ends: time for an agent to read its last messages. This and the next two waits are long enough for an
agent that is alive, and leave the rest of three seconds to the journals."""

LAST_GRACE_S = 1.0
"""When the bridge ends: time for an agent to end by itself once its stdin is closed."""

LAST_TERM_S = 0.5
"""When the bridge ends: time for an agent to end after SIGTERM; then it is killed."""

MAX_PRINTED = 5
"""Lines quoted of an agent that printed text instead of an answer to initialize."""

_PRINTED_CHARACTERS = 200

Direction = Literal["to_agent", "from_agent"]
TO_AGENT: Direction = "to_agent"
FROM_AGENT: Direction = "from_agent"

Lines = Sequence[bytes | Oversized]
"""Blocks of lines, each line with its newline; an oversized line stands alone."""


class AgentFailure(msgspec.Struct, frozen=True):
    """The reason why the agent is not there, for people and for programs."""

    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""

    def data(self) -> dict[str, Any]:
        """Give the `data` of an error answer."""
        told: dict[str, Any] = {"problem": self.reason}
        if self.exit_code is not None:
            told["exitCode"] = self.exit_code
        if self.signal is not None:
            told["signal"] = self.signal
        if self.stderr:
            told["stderr"] = self.stderr
        return told


def silence_failure(method: str, session_id: str | None, silence_s: float) -> AgentFailure:
    """Describe an agent that sends nothing while it should open a session."""
    about = f" of session {session_id}" if session_id else ""
    return AgentFailure(
        f"the agent has not answered {method}{about} and has sent nothing for {silence_s:g} s; "
        "if it answers after all, the session can be opened then; else start the agent again"
    )


def death_failure(died: ConnectionClosed, *, during: str = "") -> AgentFailure:
    """Describe an agent whose output ended."""
    if not isinstance(died, ProcessDied):
        return AgentFailure(f"the agent closed the connection{during}: {died.reason}")
    if died.signal is not None:
        how = f"was killed by signal {died.signal}"
    elif died.exit_code is not None:
        how = f"exited with code {died.exit_code}"
    else:
        how = "closed its output"
    return AgentFailure(f"the agent {how}{during}", died.exit_code, died.signal, died.stderr_tail.strip())


class WireBatch(msgspec.Struct, gc=False):
    """Lines that came together."""

    first: int
    time: float
    direction: Direction
    blocks: Lines
    count: int
    size: int

    def lines(self) -> Iterator[bytes | Oversized]:
        """Return the lines, without newlines."""
        for block in self.blocks:
            if isinstance(block, bytes):
                yield from (line for line in block.split(b"\n") if line and not line.isspace())
            else:
                yield block


class AgentTraffic:
    """Counts over all lives of an agent: starts, bytes and messages."""

    def __init__(self) -> None:
        self.starts = 0
        self.bytes = {TO_AGENT: 0, FROM_AGENT: 0}
        self.messages = {TO_AGENT: 0, FROM_AGENT: 0}


class WireLog:
    """The last lines between the bridge and its agent, in memory.

    Lines are kept as they came, in the batches in which they came: nothing is decoded while nobody looks.
    """

    def __init__(self, max_messages: int, max_bytes: int) -> None:
        self.on_batch: Callable[[WireBatch], None] | None = None
        """Takes each batch as it comes, while an inspector is open."""
        self.traffic = AgentTraffic()
        self._max_messages = max_messages
        self._max_bytes = max_bytes
        self._batches: deque[WireBatch] = deque()
        self._count = 0
        self._messages = 0
        self._bytes = 0

    def note(self, direction: Direction, lines: Lines) -> None:
        """Remember lines, and forget the oldest beyond the limits."""
        count = size = 0
        for block in lines:
            count += block.count(b"\n") if isinstance(block, bytes) else 1
            size += line_size(block)
        self.traffic.bytes[direction] += size
        self.traffic.messages[direction] += count
        batch = WireBatch(self._count + 1, time.time(), direction, lines, count, size)
        self._batches.append(batch)
        self._count += count
        self._messages += count
        self._bytes += size
        while (self._messages > self._max_messages or self._bytes > self._max_bytes) and len(self._batches) > 1:
            oldest = self._batches.popleft()
            self._messages -= oldest.count
            self._bytes -= oldest.size
        if self.on_batch is not None:
            self.on_batch(batch)

    def batches(self) -> list[WireBatch]:
        """Give the remembered batches, oldest first."""
        return list(self._batches)


class AgentProcess:
    """A running agent; made by `start_agent`."""

    def __init__(self, child: Child, limits: AgentLimits, receiver: Receiver, wire_log: WireLog) -> None:
        self.ended = asyncio.Event()
        """Set once its output has ended."""
        self.heard = 0
        """Batches of lines that it has sent: grows while it gives signs of life."""
        self.printed: list[str] = []
        """Lines that were no messages, before it answered initialize."""
        self._child = child
        self._stop_timeout_s = limits.stop_timeout_s
        self._receiver = receiver
        self._wire_log = wire_log
        self._transport = StdioTransport(*child.take_stdio(), splitter=BlockSplitter(limits.max_line_bytes))

    @property
    def unsent_bytes(self) -> int:
        """Bytes that it has not read yet."""
        return self._transport.unsent_bytes

    @property
    def stderr_tail(self) -> str:
        """The end of its stderr."""
        return self._child.stderr_tail.strip()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to read its output."""
        self._transport.start(self, tasks)

    def write(self, line: bytes) -> None:
        """Send it a line."""
        line += b"\n"
        self._wire_log.note(TO_AGENT, [line])
        self._transport.write(line)

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take lines of its output."""
        self.heard += 1
        self._wire_log.note(FROM_AGENT, lines)
        self._receiver.lines_received(lines)

    def input_ended(self, *, was_file: bool) -> None:
        """Note the end of its output."""
        del was_file
        self.ended.set()

    def hold_output(self, *, is_held: bool) -> None:
        """Read nothing more of it, or go on."""
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def note_printed(self, text: str) -> None:
        """Remember a line that is no message, to be quoted if it never answers initialize."""
        if len(self.printed) < MAX_PRINTED:
            self.printed.append(text[:_PRINTED_CHARACTERS])

    async def explain(self) -> ConnectionClosed:
        """Give the reason of its end."""
        return await self._child.death()

    async def stop(self) -> None:
        """End it, and all it has started."""
        await self._transport.close()
        await self._child.stop(grace_s=self._stop_timeout_s)
        self.ended.set()

    async def stop_soon(self) -> None:
        """End it, and all it has started, because the bridge ends: within two seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_UNSENT_S):
                await self._transport.close()
        await self._child.stop(grace_s=min(LAST_GRACE_S, self._stop_timeout_s), term_s=LAST_TERM_S)
        self.ended.set()

    def kill(self) -> None:
        """Kill it, and all it has started, now."""
        self._child.kill()


async def start_agent(
    processes: Supervisor, spec: AgentSpec, limits: AgentLimits, receiver: Receiver, wire_log: WireLog
) -> AgentProcess:
    """Start an agent; raises StartError.

    It is the user's own program and needs their keys and settings: it inherits the whole environment.
    """
    child = await processes.start(spec.command, cwd=spec.cwd, env=spec.env, inherit=EVERYTHING)
    wire_log.traffic.starts += 1
    return AgentProcess(child, limits, receiver, wire_log)


def line_size(line: bytes | Oversized) -> int:
    """Give the size of a line or a block; a dropped one has none."""
    return len(line) if isinstance(line, bytes) else 0


Answered = Callable[[Message, bytes], None]
"""Takes the agent's answer, decoded and as it came."""
Failed = Callable[[AgentFailure], None]
"""Takes the reason why no answer will come."""


class SilenceTimer:
    """Watches an agent that is to open a session: it may take long as long as it gives signs of life.

    Looks once in `silence_s`, until it is stopped, whether `signs()` has changed since the last look.
    """

    def __init__(self, silence_s: float, signs: Callable[[], object], on_silence: Callable[[], None]) -> None:
        self._silence_s = silence_s
        self._signs = signs
        self._on_silence = on_silence
        self._last = signs()
        self._timer = self._wait()

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def look(self) -> None:
        """Look now, and call `on_silence` if there was no sign since the last look."""
        signs, before = self._signs(), self._last
        self._last = signs
        if signs == before:
            self._on_silence()

    def _wait(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._silence_s, self._go_off)

    def _go_off(self) -> None:
        self._timer = self._wait()
        self.look()


class AgentCall:
    """A request to the agent."""

    def __init__(self, method: str, answered: Answered, failed: Failed, *, origin: object = None) -> None:
        self.method = method
        self.answered = answered
        self.failed = failed
        self.origin = origin
        """The viewer's request that it passes on, if it does."""
        self.timer: SilenceTimer | None = None
        """Stopped with the answer."""
        self.is_awaited = True
        """Whether anybody still waits for its answer; a late answer counts all the same."""


class PendingCalls:
    """Unanswered requests, by the ids that the agent knows them by."""

    def __init__(self) -> None:
        self._last_id = 0
        self._waiting: dict[bytes, AgentCall] = {}

    def __len__(self) -> int:
        return sum(call.is_awaited for call in self._waiting.values())

    def __iter__(self) -> Iterator[AgentCall]:
        return iter(list(self._waiting.values()))

    def add(self, call: AgentCall) -> bytes:
        """Give a request its id."""
        self._last_id += 1
        id_ = b"%d" % self._last_id
        self._waiting[id_] = call
        return id_

    def settle(self, message: Message, line: bytes) -> bool:
        """Pass an answer on; tells whether it was awaited."""
        if message.id is UNSET:
            return False
        call = self._take(bytes(message.id))
        if call is None:
            return False
        call.answered(message, line)
        return True

    def fail(self, id_: bytes, failure: AgentFailure) -> bool:
        """Fail one request; tells whether there is such a request."""
        call = self._take(id_)
        if call is not None:
            call.failed(failure)
        return call is not None

    def fail_all(self, failure: AgentFailure) -> None:
        """Fail every request: the agent is gone."""
        for id_ in list(self._waiting):
            self.fail(id_, failure)

    def origin_of(self, id_: bytes) -> object:
        """Give the viewer's request that the agent knows by this id; None if it is none."""
        call = self._waiting.get(id_)
        return None if call is None else call.origin

    def _take(self, id_: bytes) -> AgentCall | None:
        call = self._waiting.pop(id_, None)
        if call is not None and call.timer is not None:
            call.timer.stop()
        return call


class CallFailed(Exception):
    """No answer came to a request of the bridge itself; never leaves the supervisor."""

    def __init__(self, failure: AgentFailure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


def own_call(method: str) -> tuple[AgentCall, "asyncio.Future[Message]"]:
    """Make a request of the bridge itself, and the future of its answer, which raises CallFailed if there is none."""
    future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def answered(message: Message, line: bytes) -> None:
        del line
        if not future.done():
            future.set_result(message)

    def failed(failure: AgentFailure) -> None:
        if not future.done():
            future.set_exception(CallFailed(failure))

    return AgentCall(method, answered, failed), future
