"""One life of the agent: its process, the requests that it has not answered, and its end.

`AgentLink.call` writes a request at once and returns an `AgentCall`, which the caller awaits for the answer. So the
agent receives messages in the order of the calls, and the time that tasks wait for answers does not matter.

Answers are ordered among the updates around them, and a plain await would lose that order. The task that awaits an
answer runs one tick later, and the same read may return lines after the answer. Therefore the link holds those lines
back for one tick after each answer:

    tick 1   update, update, answer 3: its future is set       held: update, update
    tick 2   the task that awaits answer 3 runs
             update, update

The task must await the `AgentCall` itself, because each shield, gather or nested task in between adds a tick. Runs of
ordinary updates contain no answers, so they are never held back.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.problem import BridgeError
from dragoman.bridge.settings import AgentLimits
from dragoman.bridge.wire_log import FROM_AGENT, TO_AGENT, WireLog
from dragoman.errors import ConnectionClosedError, ProcessDiedError
from dragoman.proc import Child
from dragoman.text import one_line
from dragoman.wire import Message, Oversized, StdioTransport
from dragoman.wire.envelope import fields_of, make_request, with_id
from dragoman.wire.framing import BlockSplitter
from dragoman.wire.message import ErrorObject, parse_error

LAST_UNSENT_S = 0.3
"""When the bridge stops: time for an agent to read its last messages. This and the next two waits are long enough for a
working agent, and leave the rest of three seconds to the journals."""

LAST_GRACE_S = 1.0
"""When the bridge stops: time for an agent to exit after its stdin is closed."""

LAST_TERM_S = 0.5
"""When the bridge stops: time for an agent to exit after SIGTERM, before it is killed."""

MAX_PRINTED = 5
"""Lines to quote from an agent that printed text instead of an answer to initialize."""

_PRINTED_CHARACTERS = 200


class AgentFailure(msgspec.Struct, frozen=True):
    """The reason why the agent does not answer, as a sentence and as fields for programs."""

    reason: str
    exit_code: int | None = None
    signal: int | None = None
    stderr: str = ""

    def data(self) -> dict[str, Any]:
        """Return the `data` of an error answer."""
        data: dict[str, Any] = {"problem": self.reason}
        if self.exit_code is not None:
            data["exitCode"] = self.exit_code
        if self.signal is not None:
            data["signal"] = self.signal
        if self.stderr:
            data["stderr"] = self.stderr
        return data


class NoAnswerError(BridgeError):
    """The agent will not answer a request."""

    def __init__(self, failure: AgentFailure) -> None:
        self.failure = failure
        super().__init__(failure.reason)


class AgentEndedError(NoAnswerError):
    """The agent's process has ended, or could not be started."""


def silence_failure(method: str, session_id: str | None, silence_s: float) -> AgentFailure:
    """Return the failure of an agent that sends nothing while it should open a session."""
    about = f" of session {session_id}" if session_id else ""
    return AgentFailure(
        f"the agent has not answered {method}{about} and has sent nothing for {silence_s:g} s; try again "
        "later, or restart the agent"
    )


def death_failure(died: ConnectionClosedError, *, during: str = "") -> AgentFailure:
    """Return the failure of an agent whose output ended."""
    if not isinstance(died, ProcessDiedError):
        return AgentFailure(f"the agent closed the connection{during}: {died.reason}")
    if died.signal is not None:
        how = f"was killed by signal {died.signal}"
    elif died.exit_code is not None:
        how = f"exited with code {died.exit_code}"
    else:
        how = "closed its output"
    return AgentFailure(f"the agent {how}{during}", died.exit_code, died.signal, died.stderr_tail.strip())


class CallAnswer(NamedTuple):
    """The agent's answer to a request, decoded and as the original line."""

    message: Message
    line: bytes

    @property
    def is_error(self) -> bool:
        """Whether the agent refused the request."""
        return self.message.error is not UNSET

    @property
    def error(self) -> ErrorObject | None:
        """The error with which the agent refused the request, or None."""
        return None if self.message.error is UNSET else parse_error(self.message.error)

    @property
    def result(self) -> dict[str, Raw]:
        """The fields of the result. Empty for an error."""
        return fields_of(self.message.result)


class AgentCall:
    """A request that was written to the agent. Await it for the answer. Raises NoAnswerError."""

    def __init__(self, id_: bytes, method: str, origin: object) -> None:
        self.id = id_
        self.method = method
        self.origin = origin
        """The viewer's request that this call forwards, if any."""
        self.is_awaited = True
        """Whether a viewer still waits for the answer. A late answer is handled all the same."""
        self.answer: asyncio.Future[CallAnswer] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[Any, None, CallAnswer]:
        return self.answer.__await__()

    def settle(self, answer: CallAnswer) -> None:
        """Wake the task that awaits the answer."""
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, error: NoAnswerError) -> None:
        """Raise an error in the task that awaits the answer."""
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # marks the error as retrieved, because the call may not be awaited


class SilenceWatch:
    """Watches an agent while it opens a session. It may take any time while it shows signs of life.

    While the block of the `with` statement runs, it checks every `silence_s` seconds whether `signs()` has changed.
    If not, it calls `on_silence`. The block continues, because a late answer still opens the session.
    """

    def __init__(self, silence_s: float, signs: Callable[[], object], on_silence: Callable[[], None]) -> None:
        self._silence_s = silence_s
        self._signs = signs
        self._on_silence = on_silence
        self._last = signs()
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self._timer = asyncio.get_running_loop().call_later(self._silence_s, self._go_off)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def look(self) -> None:
        """Check now, and call `on_silence` if `signs()` has not changed since the last check."""
        signs, before = self._signs(), self._last
        self._last = signs
        if signs == before:
            self._on_silence()

    def _go_off(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._silence_s, self._go_off)
        self.look()


class AgentReceiver(Protocol):
    """Handles the messages of the agent."""

    def receive(self, link: "AgentLink", block: bytes | Oversized) -> bytes | None:
        """Handle lines up to an awaited answer. Return the lines after it, or None if there was no such answer."""
        ...


class AgentLink:
    """The connection to a running agent."""

    def __init__(
        self, child: Child, limits: AgentLimits, receiver: AgentReceiver, wire_log: WireLog, ids: Iterator[int]
    ) -> None:
        """`ids` are the ids of requests. They differ between the lives of an agent."""
        self.ended = asyncio.Event()
        """Set once the process has exited or closed its output, and all its output was handled."""
        self.read_count = 0
        """The number of reads of the agent's output, which grows while the agent shows signs of life."""
        self.printed: list[str] = []
        """Lines before the answer to initialize that are not messages."""
        self.is_introduced = False
        """Whether the agent has answered initialize."""
        self._child = child
        self._stop_timeout_s = limits.stop_timeout_s
        self._receiver = receiver
        self._wire_log = wire_log
        self._ids = ids
        self._calls: dict[bytes, AgentCall] = {}
        self._end: NoAnswerError | None = None
        self._inbox: deque[bytes | Oversized] = deque()
        self._is_holding = False
        self._is_at_eof = False
        self._transport = StdioTransport.for_child(child, splitter=BlockSplitter(limits.max_line_bytes))

    @property
    def unsent_bytes(self) -> int:
        """Number of bytes that the agent has not read yet."""
        return self._transport.unsent_bytes

    @property
    def stderr_tail(self) -> str:
        """The end of the agent's stderr."""
        return self._child.stderr_tail.strip()

    @property
    def pending(self) -> int:
        """The number of requests whose answers a viewer or the bridge waits for."""
        return sum(call.is_awaited for call in self._calls.values())

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start to read the agent's output."""
        self._transport.start(self, tasks)

    # Requests to the agent.

    def call(self, method: str, line: bytes, *, origin: object = None) -> AgentCall:
        """Send a viewer's request at once, with an id of the bridge."""
        id_ = b"%d" % next(self._ids)
        return self._send(AgentCall(id_, method, origin), with_id(line, id_))

    def ask(self, method: str, params: Any) -> AgentCall:
        """Send a request of the bridge itself at once."""
        id_ = b"%d" % next(self._ids)
        return self._send(AgentCall(id_, method, None), make_request(id_, method, params))

    def write(self, line: bytes) -> None:
        """Send a line."""
        if not self.ended.is_set():
            line += b"\n"
            self._wire_log.note(TO_AGENT, [line])
            self._transport.write(line)

    def _send(self, call: AgentCall, line: bytes) -> AgentCall:
        if self._end is not None:
            call.fail(self._end)
        else:
            self._calls[call.id] = call
            self.write(line)
        return call

    def origin_of(self, id_: bytes) -> object:
        """Return the viewer's request that was sent to the agent with this id, or None."""
        call = self._calls.get(id_)
        return None if call is None else call.origin

    # Answers of the agent.

    def settle(self, message: Message, line: bytes) -> bool:
        """Wake the task that awaits this answer. Return False if there is no such request."""
        if message.id is UNSET:
            return False
        id_ = bytes(message.id)
        call = self._calls.pop(id_, None)
        if call is not None:
            call.settle(CallAnswer(message, line))
            return True
        # The bridge's ids are numbers. A string with the same digits can only mean that request.
        call = self._calls.pop(id_.strip(b'"'), None)
        if call is None:
            return False
        shown = one_line(id_.decode(), 40)
        problem = f"the agent answered {call.method} with the id {shown}, a string, but the request has a number"
        call.fail(NoAnswerError(AgentFailure(f"{problem}; the agent must answer with the id of the request")))
        return True

    def fail_call(self, id_: bytes, failure: AgentFailure) -> bool:
        """Fail one request. Return False if there is no such request."""
        call = self._calls.pop(id_, None)
        if call is not None:
            call.fail(NoAnswerError(failure))
        return call is not None

    def fail_all(self, failure: AgentFailure) -> None:
        """Fail all requests, including later ones, because the agent is gone."""
        self._end = self._end or AgentEndedError(failure)
        calls, self._calls = self._calls, {}
        for call in calls.values():
            call.fail(self._end)
        self._inbox.clear()

    def record_printed(self, text: str) -> None:
        """Store a line that is not a message, to quote it if the agent never answers initialize."""
        if not self.is_introduced and len(self.printed) < MAX_PRINTED:
            self.printed.append(text[:_PRINTED_CHARACTERS])

    # The agent's output. Implements `wire.Receiver`.

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Handle blocks of lines."""
        self.read_count += 1
        self._wire_log.note(FROM_AGENT, lines)
        self._inbox.extend(lines)
        if not self._is_holding:
            self._deliver()

    def input_ended(self, *, was_file: bool) -> None:
        """Handle the end of the agent's output."""
        del was_file
        self._is_at_eof = True
        if not self._is_holding:
            self.ended.set()

    def hold_output(self, *, is_held: bool) -> None:
        """Pause or resume reading the agent's output."""
        if is_held:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _deliver(self) -> None:
        """Handle lines up to the next answer. The task that awaits it runs before the lines after it."""
        self._is_holding = False
        while self._inbox:
            rest = self._receiver.receive(self, self._inbox.popleft())
            if rest is not None:
                if rest:
                    self._inbox.appendleft(rest)
                self._is_holding = True
                asyncio.get_running_loop().call_soon(self._deliver)
                return
        if self._is_at_eof:
            self.ended.set()

    # The end of the agent.

    async def explain(self) -> ConnectionClosedError:
        """Return the reason why the agent ended."""
        return await self._child.death()

    async def stop(self) -> None:
        """Stop the agent with all processes that it has started."""
        await self._transport.close()
        await self._child.stop(grace_s=self._stop_timeout_s)
        self.ended.set()

    async def stop_soon(self) -> None:
        """Stop the agent with all its processes within two seconds, because the bridge stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_UNSENT_S):
                await self._transport.close()
        await self._child.stop(grace_s=min(LAST_GRACE_S, self._stop_timeout_s), term_s=LAST_TERM_S)
        self.ended.set()

    def kill(self) -> None:
        """Kill the agent with all processes that it has started."""
        self._child.kill()
