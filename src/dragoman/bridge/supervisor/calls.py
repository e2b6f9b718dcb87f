"""Requests to the agent that it has not answered: the bridge's own, and those of viewers under ids of the bridge."""

import asyncio
from collections.abc import Callable, Iterator

from msgspec import UNSET

from dragoman.bridge.supervisor.process import AgentFailure
from dragoman.wire import Message

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
