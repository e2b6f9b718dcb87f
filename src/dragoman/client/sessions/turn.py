"""A turn: its progress, which does not depend on a reader, and the iterator for the reader.

`TurnProgress` belongs to the session. The connection puts events into it, the answer to the prompt ends it, and it
builds the `TurnResult`. `Turn` belongs to the program. It sends the prompt on the first read and takes events from the
progress. A program may drop its `Turn` at any moment, and the turn is cancelled then.

The reader waits for one future, `_reader`. `put` and `_finish` complete it. When too many events wait, `put` returns a
future to the connection, which stops reading until `make_room`. `link.py` explains this back-pressure.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Self

from dragoman.client.connection.link import Link
from dragoman.client.events import Event, TextChunk, TurnFinished
from dragoman.client.problem import CancelIgnoredError, EventsLostError, RequestNotSentError, TurnTimeoutError
from dragoman.client.sessions.result import TurnResult, TurnSummary
from dragoman.errors import DragomanError
from dragoman.protocol import v1

MAX_EVENTS = 1024
"""Events that may wait for their reader. One read brings fewer, so a fast reader never stops the connection."""

MAX_BYTES = 4 * 1024 * 1024
"""Bytes of events that may wait for their reader, because updates can be long."""

MAX_UNREAD_EVENTS = 256 * 1024
MAX_UNREAD_BYTES = 256 * 1024 * 1024
"""The limits while another call waits and the connection must keep reading: a few hundred megabytes of memory."""

CANCEL_TIMEOUT_S = 10.0
"""Time for an agent to end a cancelled turn. Models and tools stop faster."""


class TurnProgress:
    """A turn from its prompt to its end."""

    def __init__(self, link: Link, session_id: str, cwd: str) -> None:
        self.events: deque[Event] = deque()
        self.is_cancelled = False
        self.is_left = False
        self._link = link
        self.session_id = session_id
        self.summary = TurnSummary(cwd)
        self._answer = self.summary.answer
        self._failure: DragomanError | None = None
        self._ended = asyncio.Event()
        self._reader: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._bytes = 0
        """Bytes of the events since the reader last caught up."""
        self._lost: EventsLostError | None = None

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    @property
    def is_held(self) -> bool:
        return self._room is not None

    def put(self, event: Event) -> asyncio.Future[None] | None:
        """Add the next event. If the reader is far behind, return the future to await before the next one."""
        if type(event) is TextChunk:
            self._answer.add(event.text, event.update.message_id)
        else:
            self.summary.add(event)
        if self._lost is not None:
            self._lost.count += 1
            return None
        self.events.append(event)
        if self._reader is not None:
            self._wake()
        link = self._link
        if link.unclaimed_bytes:
            self._bytes += link.unclaimed_bytes
            link.unclaimed_bytes = 0
        if len(self.events) >= MAX_EVENTS or self._bytes >= MAX_BYTES:
            return link.hold(self)
        return None

    def end(self, stop_reason: str, usage: v1.Usage | None = None) -> None:
        """End the turn after its last event."""
        done = self.summary.end = TurnFinished(stop_reason, usage, "".join(self._answer.messages()))
        self._finish(done)

    def fail(self, failure: DragomanError) -> None:
        """End the turn with an error, which the reader gets after the last event."""
        self._failure = self.summary.end = failure
        self._finish(None)

    def mark_not_sent(self) -> None:
        """Mark the turn as over, because its prompt was not sent."""
        self._ended.set()

    def leave(self) -> None:
        """Drop all further events, because the reader has left."""
        self.is_left = True
        self.events.clear()
        self.make_room()

    async def wait_ended(self) -> None:
        """Wait for the end of a cancelled turn. Raises CancelIgnoredError."""
        self._link.begin_wait()
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT_S):
                await self._ended.wait()
        except TimeoutError:
            raise CancelIgnoredError(self.session_id, CANCEL_TIMEOUT_S) from None
        finally:
            self._link.end_wait()

    async def more(self) -> bool:
        """Wait until there is an event to read. Return False at the end.

        Raises EventsLostError in place of dropped events, and the error that ended the turn.
        """
        self.make_room()
        if self._lost is not None:
            lost, self._lost = self._lost, None
            if isinstance(self.summary.end, TurnFinished):
                self.events.append(self.summary.end)
            raise lost
        self._bytes = 0
        while not self.events:
            if self._ended.is_set():
                failure, self._failure = self._failure, None
                if failure is not None:
                    raise failure
                return False
            await self._wait()
        return True

    def drop_excess(self) -> None:
        if len(self.events) >= MAX_UNREAD_EVENTS or self._bytes >= MAX_UNREAD_BYTES:
            self._lost = EventsLostError(self.session_id, len(self.events))
            self.events.clear()
            self._bytes = 0

    def room(self) -> asyncio.Future[None]:
        if self._room is None:
            self._room = asyncio.get_running_loop().create_future()
        return self._room

    def make_room(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    async def _wait(self) -> None:
        if self._reader is not None:
            raise RuntimeError("the events of this turn are already being read elsewhere")
        self._reader = reader = asyncio.get_running_loop().create_future()
        self._link.begin_wait()
        try:
            await reader
        finally:
            if self._reader is reader:
                self._wake()

    def _wake(self) -> None:
        """Wake the reader. It stops counting as a waiter at once, because an event is ready for it."""
        reader, self._reader = self._reader, None
        self._link.end_wait()
        if reader is not None and not reader.done():
            reader.set_result(None)

    def _finish(self, done: TurnFinished | None) -> None:
        if done is not None and not self.is_left and self._lost is None:
            self.events.append(done)
        self._ended.set()
        if self._reader is not None:
            self._wake()


class Turn:
    """The events of one prompt. Read them once with `async for`. The first read sends the prompt.

    A reader that stops, by `break`, an exception or a timeout, cancels the turn. `async with` or `aclose` waits for its
    end. Otherwise the session's next prompt waits for it. `await` returns the whole turn as a `TurnResult`, whether its
    events were read or not.

    A slow reader makes the agent wait. While another call waits for the same agent, up to 262,144 events or 256 MiB are
    kept for the reader. If there are more, they are dropped and the iterator raises EventsLostError. Later events can
    still be read, and the `TurnResult` is complete.
    """

    __slots__ = ("_begin", "_cancel", "_events", "_leave", "_loop", "_progress")

    def __init__(
        self,
        progress: TurnProgress,
        begin: Callable[[], Awaitable[None]],
        leave: Callable[[TurnProgress], None],
        cancel: Callable[[TurnProgress], None],
    ) -> None:
        self._progress = progress
        self._events = progress.events
        self._begin: Callable[[], Awaitable[None]] | None = begin
        self._leave = leave
        self._cancel = cancel
        self._loop = asyncio.get_running_loop()

    @property
    def waiting(self) -> int:
        """How many events wait to be read."""
        return len(self._events)

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended or its prompt could not be sent."""
        return self._progress.is_over

    def __repr__(self) -> str:
        state = "not sent" if self._begin else "over" if self.is_over else "running"
        return f"<Turn of session {self._progress.session_id}, {state}, {self.waiting} events wait>"

    @property
    def is_held(self) -> bool:
        """Whether the agent has to wait because too many events are unread."""
        return self._progress.is_held

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if not self._events and not await self._more():
            raise StopAsyncIteration
        return self._events.popleft()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Cancel the turn if it still runs, and wait for its end. Raises CancelIgnoredError."""
        if self._begin is None and not self._progress.is_over:
            self._leave(self._progress)
            await self._progress.wait_ended()

    def cancel(self) -> None:
        """Cancel this turn if it runs. It continues until the agent ends it."""
        self._cancel(self._progress)

    async def result(self, *, timeout_s: float | None = None) -> TurnResult:
        """Read the turn to its end and return it as one value. Events that were not read are dropped.

        The turn is cancelled `timeout_s` after its prompt was sent. The agent then has `CANCEL_TIMEOUT_S` to end it.

        Once the prompt was sent, every failure is in `error` and not raised: the text, the calls and the files up to
        then are useful as well, and one failed turn must not end a whole evaluation. Raises PromptRunningError or
        SessionClosedError if the prompt cannot be sent.
        """
        try:
            await self._start()
        except RequestNotSentError:
            raise
        except DragomanError as error:
            return self._progress.summary.result(error)
        if timeout_s is None:
            return self._progress.summary.result(await self._read_to_end(None))
        timeout: TurnTimeoutError | None = None

        def cancel_on_timeout() -> None:
            nonlocal timeout
            if not self._progress.is_over:
                timeout = TurnTimeoutError(timeout_s)
                self.cancel()

        timer = self._loop.call_later(timeout_s, cancel_on_timeout)
        try:
            failure = await self._read_to_end(timeout_s + CANCEL_TIMEOUT_S)
        finally:
            timer.cancel()
        if timeout is not None:
            timeout.__cause__ = failure
        return self._progress.summary.result(timeout or failure)

    def __await__(self) -> Generator[object, None, TurnResult]:
        return self.result().__await__()

    async def next_batch(self) -> list[Event]:
        """Wait for the next event and return all unread events. Return an empty list at the end."""
        if not self._events and not await self._more():
            return []
        batch = list(self._events)
        self._events.clear()
        return batch

    async def _read_to_end(self, limit_s: float | None) -> DragomanError | None:
        """Drop all events until the end. Return the error that ended the turn, if any."""
        try:
            async with asyncio.timeout(limit_s):
                if self._progress.is_left:
                    await self._progress.wait_ended()
                while await self._skip():
                    pass
        except TimeoutError:
            return CancelIgnoredError(self._progress.session_id, CANCEL_TIMEOUT_S)
        except DragomanError as error:
            return error
        return None

    async def _skip(self) -> bool:
        """Drop the unread events, or wait for the next one and drop it. Return False at the end."""
        try:
            return bool(await self.next_batch())
        except EventsLostError:
            return True

    async def _start(self) -> None:
        """Send the prompt, unless it was sent before."""
        begin, self._begin = self._begin, None
        if begin is not None:
            try:
                await begin()
            except BaseException:
                self._progress.mark_not_sent()
                raise

    async def _more(self) -> bool:
        await self._start()
        try:
            return await self._progress.more()
        except asyncio.CancelledError:
            self._leave(self._progress)
            raise

    def __del__(self) -> None:
        # A dropped turn is cancelled. The collector may run in another thread than the loop.
        if self._begin is not None or self._progress.is_over or self._progress.is_left or self._loop.is_closed():
            return
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        if here is self._loop:
            self._leave(self._progress)
        else:
            self._loop.call_soon_threadsafe(self._leave, self._progress)
