"""A turn: its progress, which goes on without a reader, and the iterator for the reader."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Self

from dragoman.client.events import Done, Event, Text
from dragoman.client.link import Link
from dragoman.client.problem import CancelIgnored, Refused, TurnTimeout
from dragoman.client.result import TurnResult, TurnSummary
from dragoman.errors import DragomanError
from dragoman.protocol import v1

MAX_EVENTS = 1024
"""Events that may wait for their reader: more than one read brings, so that a quick reader never holds anything up."""

MAX_READS = 64
"""Reads of 64 KiB that may wait for their reader: 4 MiB, for updates may be long."""

CANCEL_TIMEOUT_S = 10.0
"""For an agent to end a turn that was cancelled: models and tools are stopped in less."""


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
        self._mark = link.reads

    @property
    def is_over(self) -> bool:
        return self._ended.is_set()

    @property
    def is_held(self) -> bool:
        return self._room is not None

    def put(self, event: Event) -> asyncio.Future[None] | None:
        """Take the next event; returns the future to await before the next one when the reader is far behind."""
        self.events.append(event)
        if self._reader is not None:
            self._wake()
        if type(event) is Text:
            self._answer.add(event.text, event.update.message_id)
        else:
            self.summary.note(event)
            if self._link.reads - self._mark >= MAX_READS:
                return self._link.hold(self)
        if len(self.events) >= MAX_EVENTS:
            return self._link.hold(self)
        return None

    def end(self, stop_reason: str, usage: v1.Usage | None = None) -> None:
        """Take the end, after the last event."""
        done = self.summary.end = Done(stop_reason, usage, "".join(self._answer.messages()))
        self._finish(done)

    def fail(self, failure: DragomanError) -> None:
        """Take the error that ended the turn; it is raised to the reader after the last event."""
        self._failure = self.summary.end = failure
        self._finish(None)

    def never_begun(self) -> None:
        """Take note that the prompt was not sent."""
        self._ended.set()

    def leave(self) -> None:
        """Take note that nobody reads any more: further events are dropped."""
        self.is_left = True
        self.events.clear()
        self.make_room()

    async def wait_ended(self) -> None:
        """Wait for the end of a turn that was cancelled; raises CancelIgnored."""
        self._link.begin_wait()
        try:
            async with asyncio.timeout(CANCEL_TIMEOUT_S):
                await self._ended.wait()
        except TimeoutError:
            raise CancelIgnored(self.session_id, CANCEL_TIMEOUT_S) from None
        finally:
            self._link.end_wait()

    async def more(self) -> bool:
        """Wait until there is an event to read; False at the end; raises the error that ended the turn."""
        self.make_room()
        self._mark = self._link.reads
        while not self.events:
            if self._ended.is_set():
                failure, self._failure = self._failure, None
                if failure is not None:
                    raise failure
                return False
            await self._wait()
        return True

    def fullness(self) -> float:
        return max(len(self.events) / MAX_EVENTS, (self._link.reads - self._mark) / MAX_READS)

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
            raise RuntimeError("the events of a turn are read in two places at a time")
        self._reader = reader = asyncio.get_running_loop().create_future()
        self._link.begin_wait()
        try:
            await reader
        finally:
            if self._reader is reader:
                self._wake()

    def _wake(self) -> None:
        """Count the reader out at once, not only when he runs: there is something for him now."""
        reader, self._reader = self._reader, None
        self._link.end_wait()
        if reader is not None and not reader.done():
            reader.set_result(None)

    def _finish(self, done: Done | None) -> None:
        if done is not None and not self.is_left:
            self.events.append(done)
        self._ended.set()
        if self._reader is not None:
            self._wake()


class Turn:
    """The events of one prompt, to be read once with `async for`; nothing is sent before.

    A reader who stops, by `break`, an exception or a timeout, cancels the turn. With `async with`, or `aclose`, its
    end is waited for there; otherwise the next prompt of the session does so. `await` gives the whole turn as a
    `TurnResult`, whether its events were read before or not.
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
        """Whether the turn has come to its end, or never began."""
        return self._progress.is_over

    def __repr__(self) -> str:
        state = "not sent" if self._begin else "over" if self.is_over else "running"
        return f"<Turn of session {self._progress.session_id}, {state}, {self.waiting} events wait>"

    @property
    def is_held(self) -> bool:
        """Whether the agent is made to wait, because so much waits to be read."""
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
        """Leave: cancel the turn if it still runs, and wait for its end. Raises CancelIgnored."""
        if self._begin is None and not self._progress.is_over:
            self._leave(self._progress)
            await self._progress.wait_ended()

    def cancel(self) -> None:
        """Cancel this turn if it runs; it goes on until the agent has ended it."""
        self._cancel(self._progress)

    async def result(self, *, timeout_s: float | None = None) -> TurnResult:
        """Read the turn to its end and return it as one value; events that were not read before are dropped.

        After `timeout_s`, counted from when the prompt goes out, the turn is cancelled. The agent then has
        `CANCEL_TIMEOUT_S` to end it.

        Whatever happens once the prompt is out is in `error` and not raised: the text, the calls and the files until
        then are wanted as well, and one failed turn of an evaluation should not end the others. Raises only the kinds
        of Refused, for a prompt that cannot be sent: PromptRunning and SessionClosed.
        """
        try:
            await self._start()
        except Refused:
            raise
        except DragomanError as error:
            return self._progress.summary.result(error)
        if timeout_s is None:
            return self._progress.summary.result(await self._read_to_end(None))
        timeout: TurnTimeout | None = None

        def end_it() -> None:
            nonlocal timeout
            if not self._progress.is_over:
                timeout = TurnTimeout(timeout_s)
                self.cancel()

        timer = self._loop.call_later(timeout_s, end_it)
        try:
            failure = await self._read_to_end(timeout_s + CANCEL_TIMEOUT_S)
        finally:
            timer.cancel()
        if timeout is not None:
            timeout.__cause__ = failure
        return self._progress.summary.result(timeout or failure)

    def __await__(self) -> Generator[object, None, TurnResult]:
        return self.result().__await__()

    async def take(self) -> list[Event]:
        """Wait for the next event and return it with all that wait behind it; nothing at the end."""
        if not self._events and not await self._more():
            return []
        taken = list(self._events)
        self._events.clear()
        return taken

    async def _read_to_end(self, limit_s: float | None) -> DragomanError | None:
        """Drop the events that wait and those that come; the error that ended the turn, if any."""
        try:
            async with asyncio.timeout(limit_s):
                if self._progress.is_left:
                    await self._progress.wait_ended()
                while await self.take():
                    pass
        except TimeoutError:
            return CancelIgnored(self._progress.session_id, CANCEL_TIMEOUT_S)
        except DragomanError as error:
            return error
        return None

    async def _start(self) -> None:
        """Send the prompt, unless that is done."""
        begin, self._begin = self._begin, None
        if begin is not None:
            try:
                await begin()
            except BaseException:
                self._progress.never_begun()
                raise

    async def _more(self) -> bool:
        await self._start()
        try:
            return await self._progress.more()
        except asyncio.CancelledError:
            self._leave(self._progress)
            raise

    def __del__(self) -> None:
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
