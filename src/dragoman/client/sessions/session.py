"""A session with an agent: prompts go in, events come out."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Protocol, TypeVar

import msgspec

from dragoman.client.connection.capability_check import CapabilityCheck, Prompt
from dragoman.client.connection.link import Link
from dragoman.client.events import Event, MessageWithdrawn, SubagentEvent, TextChunk, TurnFinished
from dragoman.client.internal import internal
from dragoman.client.problem import NotOfferedError, PromptRunningError, SessionClosedError, TurnStoppedError
from dragoman.client.sessions.result import TurnResult
from dragoman.client.sessions.state import SessionState
from dragoman.client.sessions.turn import Turn, TurnProgress
from dragoman.errors import DragomanError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_CANCEL, SESSION_SET_CONFIG_OPTION, SESSION_SET_MODE, Method
from dragoman.protocol.prompt_echo import PromptEcho
from dragoman.protocol.turn_usage import usage_from_meta
from dragoman.protocol.unions import UnknownVariant
from dragoman.telemetry.operation import trace_prompt
from dragoman.telemetry.setup import wait_loaded as wait_telemetry_loaded
from dragoman.text import one_line

T = TypeVar("T")

MAX_BETWEEN_TURNS = 1024
MAX_BETWEEN_TURNS_BYTES = 64 * 1024 * 1024
"""Limits for the events kept outside of turns. They bound the memory for an agent that never stops sending."""


class LatestEvents:
    """The latest events outside of any turn. The program may remove them from `events`."""

    def __init__(self, link: Link) -> None:
        self.events: deque[Event] = deque()
        self._link = link
        self._sizes: deque[int] = deque()
        """The sizes of the events, including those that the program removed since the last `add`."""
        self._bytes = 0

    def add(self, event: Event) -> None:
        """Add an event, and drop the oldest ones if there are too many."""
        size, self._link.unclaimed_bytes = self._link.unclaimed_bytes, 0
        while len(self._sizes) > len(self.events):
            self._bytes -= self._sizes.popleft()
        self.events.append(event)
        self._sizes.append(size)
        self._bytes += size
        while len(self.events) > 1 and (len(self.events) > MAX_BETWEEN_TURNS or self._bytes > MAX_BETWEEN_TURNS_BYTES):
            self.events.popleft()
            self._bytes -= self._sizes.popleft()


class SubagentSessions:
    """The states of the subagents' sessions of one session, created on their first message."""

    def __init__(self, parent: SessionState) -> None:
        self._parent = parent
        self.states: dict[str, SessionState] = {}

    def find(self, session_id: str) -> SessionState | None:
        """Return the state of a subagent's session, or None if the agent did not announce it."""
        if session_id not in self.states:
            parents = [self._parent, *self.states.values()]
            if not any(session_id in parent.entities.subagents for parent in parents):
                return None
            self.states[session_id] = SessionState(session_id, self._parent.cwd, self._parent.additional_directories)
        return self.states[session_id]

    def event(self, child: SessionState, update: v1.SessionUpdate) -> Event:
        """Apply an update to a subagent's session and return its event."""
        parents = [self._parent, *self.states.values()]
        known = [parent.entities.subagents[child.id] for parent in parents if child.id in parent.entities.subagents]
        return SubagentEvent(known[0], child.apply(update))


class PromptResponse(msgspec.Struct, rename="camel"):
    """The end of a turn, with any stop reason. The name is the protocol's, because lenient decoding depends on it."""

    stop_reason: str
    usage: v1.Usage | None = None
    meta: dict[str, Any] | None = msgspec.field(name="_meta", default=None)


SESSION_PROMPT: Method[v1.PromptRequest, PromptResponse] = Method(
    "session/prompt", "agent", "request", v1.PromptRequest, PromptResponse
)


class OwningAgent(Protocol):
    """The agent connection that a session belongs to."""

    @property
    def link(self) -> Link: ...

    @property
    def check(self) -> CapabilityCheck: ...

    async def fork(self, session: "Session | str") -> "Session": ...

    async def close(self, session: "Session | str") -> None: ...

    async def delete(self, session: "Session | str") -> None: ...

    async def set_title(self, session: "Session | str", title: str) -> str: ...

    async def archive(self, session: "Session | str") -> None: ...

    async def status(self, session: "Session | str") -> Literal["open", "saved"]: ...


class Session(SessionState):
    """One conversation, as an agent's `new_session`, `load_session`, `resume_session` and `fork` return it."""

    def __init__(
        self,
        home: OwningAgent,
        session_id: str,
        cwd: str,
        *,
        additional_directories: Sequence[str] = (),
        mcp_servers: Sequence[v1.McpServer] = (),
    ) -> None:
        super().__init__(session_id, cwd, tuple(additional_directories))
        self.mcp_servers = tuple(mcp_servers)
        self.history: list[Event] = []
        """The events that a load replayed, in order and without withdrawn messages."""
        self._latest = LatestEvents(home.link)
        self.events_between_turns: deque[Event] = self._latest.events
        """The latest events outside of any turn."""
        self.on_detach: Callable[[], object] | None = None
        """Called when the session will receive nothing more."""
        self._home = home
        self._link = home.link
        self._progress: TurnProgress | None = None
        self._echo: PromptEcho | None = None
        """The prompt of the running turn. Some agents send it back, and that does not become an event."""
        self._is_closed = False
        self._deliver: Callable[[Event], asyncio.Future[None] | None] = self._latest.add
        self._cancellation: asyncio.Future[None] | None = None
        self._subagents = SubagentSessions(self)

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "busy" if self.is_busy else "idle"
        title = f" {one_line(self.title)!r}" if self.title else ""
        return f"<Session {self.id}{title} in {self.cwd}, {state}>"

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._progress is not None

    def prompt(self, prompt: Prompt) -> Turn:
        """Return the turn of a prompt. Read its events with `async for`. The last one is `TurnFinished`.

        Raises MissingCapabilityError at once. Reading raises PromptRunningError, SessionClosedError, CancelIgnoredError
        if the agent does not end the previous turn, and RemoteError, InvalidResultError, LoginRequiredError or
        ProcessDiedError if this turn fails.
        """
        request = v1.PromptRequest(session_id=self.id, prompt=self._home.check.prompt(prompt))
        progress = TurnProgress(self._link, self.id, self.cwd)
        return Turn(progress, lambda: self._begin(progress, request), self._leave, self._cancel_turn)

    async def ask(self, prompt: Prompt) -> str:
        """Send a prompt and return the text of the answer.

        Raises TurnStoppedError if the stop reason is not `end_turn`, and the errors of `prompt`.
        """
        async with self.prompt(prompt) as turn:
            async for event in turn:
                if isinstance(event, TurnFinished):
                    if event.stop_reason != "end_turn":
                        raise TurnStoppedError(event.stop_reason, event.text)
                    return event.text
        raise AssertionError("a turn ends with TurnFinished or an error")

    async def run(self, prompt: Prompt, *, timeout_s: float | None = None) -> TurnResult:
        """Send a prompt and return the whole turn: text, tool calls, changed files, usage, stop reason and error.

        After `timeout_s` the turn is cancelled. The result then has everything that arrived before, and its error is a
        TurnTimeoutError. Errors of the agent and the connection are not raised either, see `Turn.result`. Raises only
        errors of the call itself: MissingCapabilityError, PromptRunningError and SessionClosedError.
        """
        return await self.prompt(prompt).result(timeout_s=timeout_s)

    def cancel(self) -> None:
        """Cancel the running turn, if any. The agent's open permission requests are answered `cancelled`.

        The turn continues until the agent ends it, so keep reading its events.
        """
        if self._progress is not None and not self._progress.is_cancelled:
            self._progress.is_cancelled = True
            self._link.notify_soon(SESSION_CANCEL, v1.CancelNotification(session_id=self.id))
            self._dismiss()

    async def set_mode(self, mode_id: str) -> None:
        """Switch to another mode. Raises NotOfferedError, SessionClosedError and the errors of a call."""
        self._require_open()
        offered = [mode.id for mode in self.modes.available_modes] if self.modes else []
        if mode_id not in offered:
            raise NotOfferedError("mode", mode_id, offered)
        await self._link.call(SESSION_SET_MODE, v1.SetSessionModeRequest(session_id=self.id, mode_id=mode_id))
        self.set_mode_id(mode_id)

    async def set_config_option(self, option_id: str, value: str | bool) -> None:
        """Set a config option. Raises NotOfferedError, SessionClosedError and the errors of a call."""
        self._require_open()
        known = [option for option in self.config_options if not isinstance(option, UnknownVariant)]
        if option_id not in [option.id for option in known]:
            raise NotOfferedError("option", option_id, [option.id for option in known])
        if isinstance(value, bool):
            request = v1.SetSessionConfigOptionBoolean(session_id=self.id, config_id=option_id, value=value)
        else:
            request = v1.SetSessionConfigOptionValueId(session_id=self.id, config_id=option_id, value=value)
        answer = await self._link.call(SESSION_SET_CONFIG_OPTION, request)
        self.config_options = tuple(answer.config_options)

    async def fork(self) -> "Session":
        """Open a copy of this session. Raises MissingCapabilityError, SessionClosedError and the errors of a call."""
        self._require_open()
        return await self._home.fork(self)

    async def close(self) -> None:
        """Close the session at the agent. Raises MissingCapabilityError and the errors of a call."""
        await self._home.close(self)

    async def delete(self) -> None:
        """Delete the session at the agent. Raises MissingCapabilityError and the errors of a call."""
        await self._home.delete(self)

    async def set_title(self, title: str) -> str:
        """Set the title and return the one that the agent stored. Raises MissingCapabilityError."""
        return await self._home.set_title(self, title)

    async def archive(self) -> None:
        """Close the session at the agent and remove it from its list. Raises MissingCapabilityError."""
        await self._home.archive(self)

    async def status(self) -> Literal["open", "saved"]:
        """Return whether the agent has the session in memory (`open`) or not. Raises MissingCapabilityError."""
        return await self._home.status(self)

    # ── internal to the client ──────────────────────────────────────────────────────────────────

    @internal
    def receive(self, update: v1.SessionUpdate) -> Awaitable[None] | None:
        """Apply an update from the agent. If a future is returned, await it before the next read."""
        if type(update) is v1.AgentMessageChunk and type(update.content) is v1.TextContent and update.meta is None:
            return self._deliver(TextChunk(update.content.text, update))
        if type(update) is v1.UserMessageChunk and self._echo is not None:
            content = update.content
            if self._echo.consume(content.text if type(content) is v1.TextContent else None, update.message_id):
                return None
        return self._deliver(self.apply(update))

    @internal
    def find_subagent(self, session_id: str) -> SessionState | None:
        """Return the state of a subagent's session at any depth, or None if it is unknown."""
        return self._subagents.find(session_id)

    @internal
    def list_subagents(self) -> tuple[str, ...]:
        """Return the ids of the subagents' sessions that received a message."""
        return tuple(self._subagents.states)

    @internal
    def receive_from(self, child: SessionState, update: v1.SessionUpdate) -> Awaitable[None] | None:
        """Apply an update of a subagent's session."""
        return self._deliver(self._subagents.event(child, update))

    @internal
    def add_event(self, event: Event) -> None:
        """Add an event that the client created."""
        self._deliver(event)

    @internal
    @contextmanager
    def replaying(self) -> Generator[None]:
        """Collect updates in the history while the session is loaded."""
        self._deliver = self.history.append
        try:
            yield
        finally:
            self._deliver = self._latest.add
            self.history[:] = drop_withdrawn(self.history)

    @internal
    async def unless_cancelled(self, work: Awaitable[T]) -> T | None:
        """Return the result of a coroutine, or None as soon as the turn is cancelled or fails."""
        task = asyncio.ensure_future(work)
        try:
            if self._progress is not None and self._progress.is_cancelled:
                return None
            if self._cancellation is None:
                self._cancellation = asyncio.get_running_loop().create_future()
            cancellation = self._cancellation
            await asyncio.wait({task, cancellation}, return_when=asyncio.FIRST_COMPLETED)
            return None if cancellation.done() else task.result()
        finally:
            task.cancel()

    @internal
    def detach(self) -> None:
        """Close this object, because the session will receive nothing more."""
        self._is_closed = True
        self._dismiss()
        if self.on_detach is not None:
            self.on_detach()

    async def _begin(self, progress: TurnProgress, request: v1.PromptRequest) -> None:
        self._require_open()
        if self._progress is not None and self._progress.is_left:
            await self._progress.wait_ended()
        if self._progress is not None:
            raise PromptRunningError(self.id)
        self._require_open()
        self._progress = progress
        self._echo = PromptEcho(each.text if type(each) is v1.TextContent else None for each in request.prompt)
        self._deliver = progress.put
        self._link.start(self._run(progress, request))

    async def _run(self, progress: TurnProgress, request: v1.PromptRequest) -> None:
        try:
            answer = await self._send(request)
        except DragomanError as error:
            self._end()
            if progress.is_cancelled and isinstance(error, RemoteError):
                progress.end("cancelled")  # some agents answer a cancelled prompt with an error
            else:
                self._dismiss()
                progress.fail(error)
        else:
            self._end()
            progress.end(answer.stop_reason, answer.usage or usage_from_meta(answer.meta))

    async def _send(self, request: v1.PromptRequest) -> PromptResponse:
        await wait_telemetry_loaded()
        with trace_prompt(self._link.agent_name, self.id) as operation:
            meta = operation.inject()
            traced = request if meta is None else msgspec.structs.replace(request, meta=meta)
            answer = await self._link.send(SESSION_PROMPT, traced)
            operation.set_attributes({"gen_ai.response.finish_reasons": [answer.stop_reason]})
            return answer

    def _end(self) -> None:
        self._progress = self._echo = None
        self._deliver = self._latest.add

    def _cancel_turn(self, progress: TurnProgress) -> None:
        if self._progress is progress:
            self.cancel()

    def _leave(self, progress: TurnProgress) -> None:
        progress.leave()
        if self._progress is progress:
            self._deliver = _drop
            self.cancel()

    def _dismiss(self) -> None:
        cancellation, self._cancellation = self._cancellation, None
        if cancellation is not None and not cancellation.done():
            cancellation.set_result(None)

    def _require_open(self) -> None:
        if self._is_closed:
            raise SessionClosedError(self.id)


def drop_withdrawn(events: Sequence[Event]) -> list[Event]:
    """Return the events without the messages that the agent withdrew."""
    void = {event.message_id for event in events if isinstance(event, MessageWithdrawn)}
    return [event for event in events if not _belongs_to(event, void)] if void else list(events)


def _belongs_to(event: Event, message_ids: Collection[str | None]) -> bool:
    update = getattr(event, "update", None)
    return isinstance(update, v1.AgentMessageChunk) and update.message_id in message_ids


def _drop(_event: Event) -> None:
    return
