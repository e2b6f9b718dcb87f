"""The connection to an agent as the sessions on it share it.

Back-pressure. Unread events wait in the progress of their turn. At the limit the connection reads no further until the
reader has caught up: the agent has to wait, and memory stays bounded. But one pipe carries all sessions. While another
waiter needs a message from it (also the reader itself, with a call in the middle of its loop), no more reading would be
a deadlock. The limit is higher then.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from dragoman.client.problem import NeedsLogin
from dragoman.errors import MESSAGES, ConnectionClosed, ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import Method

P = TypeVar("P")
R = TypeVar("R")

PATIENCE = 64
"""How many times more may wait while somebody else waits for the connection."""


class Reading(Protocol):
    """Events that wait for their reader."""

    def fullness(self) -> float:
        """Return how full it is: at 1 the connection stops reading if it may."""
        ...

    def room(self) -> asyncio.Future[None]:
        """Return the future that is done when there is room again."""
        ...

    def make_room(self) -> None:
        """Let the connection read on."""
        ...


class Link:
    """Calls the agent, and counts those who wait for it."""

    def __init__(self, connection: Connection, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self.agent_name = "agent"
        """The name of the agent, once it has answered `initialize`."""
        self.auth_methods: Sequence[v1.AuthMethod] = ()
        self.auth: v1.AuthStatusResponse | None = None
        """The login of the agent as it last told it."""
        self.reads = 0
        """How often something was read; a read is at most 64 KiB."""
        self._connection = connection
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiters = 0
        self._held: Reading | None = None

    async def call(self, method: Method[P, R], params: P) -> R:
        """Send a request and wait for its result.

        Raises RemoteError, InvalidResult, NeedsLogin, or ConnectionClosed: ProcessDied when the agent has died.
        """
        self.begin_wait()
        try:
            return await self.send(method, params)
        finally:
            self.end_wait()

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request and wait for its result, as plain JSON; raises as `call` does."""
        self.begin_wait()
        try:
            return await self._connection.call_extension(name, params)
        finally:
            self.end_wait()

    async def send(self, method: Method[P, R], params: P) -> R:
        """Call without counting as a waiter: for prompts, whose readers count instead."""
        try:
            return await self._connection.call(method, params)
        except RemoteError as error:
            if error.code == ErrorCode.AUTH_REQUIRED:
                raise NeedsLogin(self.command, self.auth_methods, _own_words(error)) from error
            raise

    def note_auth(self, update: v1.AuthStatusUpdateNotification) -> None:
        """Take note of the agent's login, which has changed."""
        self.auth = v1.AuthStatusResponse(state=update.state, accounts=update.accounts, meta=update.meta)

    def tell(self, method: Method[P, None], params: P) -> None:
        """Send a notification soon; an agent that is gone needs none."""
        self.start(self._notify(method, params))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something beside, until `settle` at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for all that runs beside; the connection is closed, so that each of them ends."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def begin_wait(self) -> None:
        """Count a waiter for messages of the agent."""
        self._waiters += 1
        if self._held is not None and self._held.fullness() < PATIENCE:
            self._held.make_room()
            self._held = None

    def end_wait(self) -> None:
        """Count them out."""
        self._waiters -= 1

    def hold(self, reading: Reading) -> asyncio.Future[None] | None:
        """Return the future that the connection has to await before it reads on, if any."""
        if reading.fullness() < (PATIENCE if self._waiters else 1):
            return None
        self._held = reading
        return reading.room()

    async def _notify(self, method: Method[P, None], params: P) -> None:
        try:
            await self._connection.notify(method, params)
        except ConnectionClosed:
            return


def _own_words(error: RemoteError) -> str:
    """Return the agent's own words about a login, without the standard phrase."""
    return "" if error.words.lower() == MESSAGES[ErrorCode.AUTH_REQUIRED].lower() else error.words
