"""Requests to the agent that it has not answered: ours, and those of viewers under ids of ours."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import UNSET

from dragoman.bridge.hub.trouble import Trouble
from dragoman.bridge.hub.watch import Watch
from dragoman.wire import Message

if TYPE_CHECKING:
    from dragoman.bridge.hub.request import Request

Answered = Callable[[Message, bytes], None]
"""Takes the agent's answer, taken apart and as it came."""
Failed = Callable[[Trouble], None]
"""Is told that none will come."""


class Call:
    """A request to the agent."""

    def __init__(
        self,
        method: str,
        answered: Answered,
        failed: Failed,
        *,
        request: "Request | None" = None,
    ) -> None:
        self.method = method
        self.answered = answered
        self.failed = failed
        self.request = request
        """The viewer's request that it passes on, if it does."""
        self.watch: Watch | None = None
        """Looks for signs of life until it is answered, if there is one."""
        self.is_awaited = True
        """Whether anybody still waits for its answer; one that comes late counts all the same."""


class Calls:
    """Finds the request that an answer belongs to."""

    def __init__(self) -> None:
        self._last_id = 0
        self._waiting: dict[bytes, Call] = {}

    def __len__(self) -> int:
        return sum(call.is_awaited for call in self._waiting.values())

    def add(self, call: Call) -> bytes:
        """Give a request its id."""
        self._last_id += 1
        id_ = b"%d" % self._last_id
        self._waiting[id_] = call
        return id_

    def settle(self, message: Message, line: bytes) -> bool:
        """Pass an answer on; tells whether anybody waited for it."""
        if message.id is UNSET:
            return False
        call = self._take(bytes(message.id))
        if call is None:
            return False
        call.answered(message, line)
        return True

    def fail(self, id_: bytes, trouble: Trouble) -> bool:
        """Tell whoever waits for one answer that it will not come; tells whether anybody waited for it."""
        call = self._take(id_)
        if call is not None:
            call.failed(trouble)
        return call is not None

    def fail_all(self, trouble: Trouble) -> None:
        """Tell everybody that no answer will come."""
        for id_ in list(self._waiting):
            self.fail(id_, trouble)

    def request_of(self, id_: bytes) -> "Request | None":
        """Give the viewer's request that is under way as this one."""
        call = self._waiting.get(id_)
        return None if call is None else call.request

    def _take(self, id_: bytes) -> Call | None:
        call = self._waiting.pop(id_, None)
        if call is not None and call.watch is not None:
            call.watch.stop()
        return call


class AgentTrouble(Exception):
    """No answer came to a request of ours; never leaves the hub."""

    def __init__(self, trouble: Trouble) -> None:
        self.trouble = trouble
        super().__init__(trouble.reason)


def own_call(method: str) -> tuple[Call, "asyncio.Future[Message]"]:
    """Make a request of ours, and what its answer comes in; AgentTrouble if there will be none."""
    future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()

    def answered(message: Message, line: bytes) -> None:
        del line
        if not future.done():
            future.set_result(message)

    def failed(trouble: Trouble) -> None:
        if not future.done():
            future.set_exception(AgentTrouble(trouble))

    return Call(method, answered, failed), future
