"""The connection to an agent, shared by its sessions.

Back-pressure. Unread events wait in the progress of their turn. At a limit the connection stops reading until the
reader has caught up, so the agent waits and memory stays bounded. But one pipe carries all sessions. Another call may
need a message from it, even a call that the reader makes inside its loop. To stop reading would then be a deadlock, so
the connection keeps reading and more events may wait. Beyond a second limit the unread events of the turn are dropped,
and its reader gets EventsLostError.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from dragoman.client.problem import LoginRequiredError, login_message
from dragoman.errors import ConnectionClosedError, ErrorCode, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.connection import Connection
from dragoman.protocol.methods import Method

P = TypeVar("P")
R = TypeVar("R")


class Reading(Protocol):
    """A buffer of events that wait for their reader."""

    def drop_excess(self) -> None:
        """Drop the events if there are too many to keep while the connection keeps reading."""
        ...

    def room(self) -> asyncio.Future[None]:
        """Return the future that is done when the buffer has room again."""
        ...

    def make_room(self) -> None:
        """Complete that future, so that the connection continues to read."""
        ...


class Link:
    """Calls the agent, and counts the callers that wait for its messages."""

    def __init__(self, connection: Connection, command: Sequence[str]) -> None:
        self.command = tuple(command)
        self.agent_name = "agent"
        """The agent's name, known once it has answered `initialize`."""
        self.auth_methods: Sequence[v1.AuthMethod] = ()
        self.auth: v1.AuthStatusResponse | None = None
        """The agent's last report of its login."""
        self.unclaimed_bytes = 0
        """Size of the last read. The first turn that gets an event from that read counts all of it."""
        self._connection = connection
        self._tasks: set[asyncio.Task[Any]] = set()
        self._waiters = 0
        self._held: Reading | None = None

    async def call(self, method: Method[P, R], params: P) -> R:
        """Send a request and wait for its result.

        Raises RemoteError, InvalidResultError, LoginRequiredError or ConnectionClosedError. The latter is a
        ProcessDiedError if the agent has died.
        """
        self.begin_wait()
        try:
            return await self.send(method, params)
        finally:
            self.end_wait()

    async def call_extension(self, name: str, params: Mapping[str, Any]) -> Any:
        """Send an extension request and return its result as plain JSON. Raises the errors of `call`."""
        self.begin_wait()
        try:
            return await self._connection.call_extension(name, params)
        finally:
            self.end_wait()

    async def send(self, method: Method[P, R], params: P) -> R:
        """Send a prompt and wait for its result. Only the reader of the turn counts as a waiter."""
        try:
            return await self._connection.call(method, params)
        except RemoteError as error:
            if error.code == ErrorCode.AUTH_REQUIRED:
                raise LoginRequiredError(self.command, self.auth_methods, login_message(error)) from error
            raise

    def set_auth(self, update: v1.AuthStatusUpdateNotification) -> None:
        """Store the agent's changed login status."""
        self.auth = v1.AuthStatusResponse(state=update.state, accounts=update.accounts, meta=update.meta)

    def notify_soon(self, method: Method[P, None], params: P) -> None:
        """Send a notification in the background. Do nothing if the agent has closed the connection."""
        self.start(self._notify(method, params))

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the background, until `settle` at the latest."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Wait for all background work. The connection must be closed, so that each task ends."""
        if self._tasks:
            await asyncio.wait(self._tasks)

    def begin_wait(self) -> None:
        """Add a caller that waits for a message, and resume reading."""
        self._waiters += 1
        if self._held is not None:
            self._held.make_room()
            self._held = None

    def end_wait(self) -> None:
        """Remove a waiting caller."""
        self._waiters -= 1

    def hold(self, reading: Reading) -> asyncio.Future[None] | None:
        """Return the future to await before the next read, for a full buffer. Return None while a caller waits."""
        if self._waiters:
            reading.drop_excess()
            return None
        self._held = reading
        return reading.room()

    async def _notify(self, method: Method[P, None], params: P) -> None:
        try:
            await self._connection.notify(method, params)
        except ConnectionClosedError:
            return
