"""A session with an agent: prompts go in, events come out."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Generator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol, TypeVar

import msgspec

from dragoman.client.capability_check import CapabilityCheck, Prompt
from dragoman.client.events import Done, Event, SubagentEvent, Text, Withdrawn
from dragoman.client.internal import internal
from dragoman.client.link import Link
from dragoman.client.problem import NotOffered, PromptRunning, SessionClosed, TurnStopped
from dragoman.client.result import TurnResult
from dragoman.client.state import SessionState
from dragoman.client.turn import Turn, TurnProgress
from dragoman.errors import DragomanError, RemoteError
from dragoman.protocol import v1
from dragoman.protocol.methods import SESSION_CANCEL, SESSION_SET_CONFIG_OPTION, SESSION_SET_MODE, Method
from dragoman.protocol.unions import UnknownVariant
from dragoman.telemetry.operation import trace_prompt
from dragoman.telemetry.setup import start as start_telemetry
from dragoman.text import one_line

T = TypeVar("T")

MAX_BETWEEN_TURNS = 1024
"""Events outside of any turn that are kept: the bound for an agent that goes on talking."""


class SubagentSessions:
    """The sessions of the subagents of one session: their states, made when something comes for them."""

    def __init__(self, parent: SessionState) -> None:
        self._parent = parent
        self.states: dict[str, SessionState] = {}

    def find(self, session_id: str) -> SessionState | None:
        """Return the state of a subagent's session, if it was announced."""
        if session_id not in self.states:
            parents = [self._parent, *self.states.values()]
            if not any(session_id in parent.entities.subagents for parent in parents):
                return None
            self.states[session_id] = SessionState(session_id, self._parent.cwd, self._parent.additional_directories)
        return self.states[session_id]

    def event(self, child: SessionState, update: v1.SessionUpdate) -> Event:
        """Take an update of a subagent's session, and return its event."""
        parents = [self._parent, *self.states.values()]
        known = [parent.entities.subagents[child.id] for parent in parents if child.id in parent.entities.subagents]
        return SubagentEvent(known[0], child.note(update))


class PromptResponse(msgspec.Struct, rename="camel"):
    """The end of a turn, with any reason; named as in the protocol, because leniency goes by the name."""

    stop_reason: str
    usage: v1.Usage | None = None


SESSION_PROMPT: Method[v1.PromptRequest, PromptResponse] = Method(
    "session/prompt", "agent", "request", v1.PromptRequest, PromptResponse
)


class OwningAgent(Protocol):
    """The agent that a session belongs to."""

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
    """One conversation; made by an agent's `new_session`, `load_session`, `resume_session` and `fork`."""

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
        """What a load replayed, in order, without the messages that were withdrawn."""
        self.events_between_turns: deque[Event] = deque(maxlen=MAX_BETWEEN_TURNS)
        """The last events that came outside of any turn."""
        self.on_detach: Callable[[], object] | None = None
        """Called once nothing comes for this session any more."""
        self._home = home
        self._link = home.link
        self._progress: TurnProgress | None = None
        self._is_closed = False
        self._deliver: Callable[[Event], asyncio.Future[None] | None] = self.events_between_turns.append
        self._cancellation: asyncio.Future[None] | None = None
        self._subagents = SubagentSessions(self)

    @property
    def strays(self) -> deque[Event]:
        """The former name of `events_between_turns`."""
        return self.events_between_turns

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "busy" if self.is_busy else "idle"
        title = f" {one_line(self.title)!r}" if self.title else ""
        return f"<Session {self.id}{title} in {self.cwd}, {state}>"

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self._progress is not None

    def prompt(self, prompt: Prompt) -> Turn:
        """Say something; the events of the turn that follows are read with `async for`, and the last one is `Done`.

        Raises MissingCapability at once. Reading raises PromptRunning, SessionClosed, CancelIgnored when the agent does
        not end the turn before, and RemoteError, InvalidResult, NeedsLogin or ProcessDied when this one fails.
        """
        request = v1.PromptRequest(session_id=self.id, prompt=self._home.check.prompt(prompt))
        progress = TurnProgress(self._link, self.id, self.cwd)
        return Turn(progress, lambda: self._begin(progress, request), self._leave, self._cancel_turn)

    async def ask(self, prompt: Prompt) -> str:
        """Say something and return the text of the answer.

        Raises TurnStopped when the turn ends for another reason than being done, and the errors of `prompt`.
        """
        async with self.prompt(prompt) as turn:
            async for event in turn:
                if isinstance(event, Done):
                    if event.stop_reason != "end_turn":
                        raise TurnStopped(event.stop_reason, event.text)
                    return event.text
        raise AssertionError("a turn ends with Done or an error")

    async def run(self, prompt: Prompt, *, timeout_s: float | None = None) -> TurnResult:
        """Say something and return the whole turn: text, tool calls, changed files, usage, stop reason and error.

        After `timeout_s` the turn is cancelled, and the result has what came until then, with `TurnTimeout` as its
        error. Errors of the agent and of the connection are in the result too, and are not raised: see `Turn.result`.
        Raises only what is wrong with the call itself: MissingCapability, PromptRunning and SessionClosed.
        """
        return await self.prompt(prompt).result(timeout_s=timeout_s)

    def cancel(self) -> None:
        """Cancel the running turn, if there is one; open questions of the agent are answered `cancelled`.

        The turn goes on until the agent has ended it: its events are still to be read.
        """
        if self._progress is not None and not self._progress.is_cancelled:
            self._progress.is_cancelled = True
            self._link.tell(SESSION_CANCEL, v1.CancelNotification(session_id=self.id))
            self._dismiss()

    async def set_mode(self, mode_id: str) -> None:
        """Switch to another mode; raises NotOffered, SessionClosed and the errors of a call."""
        self._require_open()
        offered = [mode.id for mode in self.modes.available_modes] if self.modes else []
        if mode_id not in offered:
            raise NotOffered("mode", mode_id, offered)
        await self._link.call(SESSION_SET_MODE, v1.SetSessionModeRequest(session_id=self.id, mode_id=mode_id))
        self.set_mode_id(mode_id)

    async def set_config_option(self, option_id: str, value: str | bool) -> None:
        """Set an option; raises NotOffered, SessionClosed and the errors of a call."""
        self._require_open()
        known = [option for option in self.config_options if not isinstance(option, UnknownVariant)]
        if option_id not in [option.id for option in known]:
            raise NotOffered("option", option_id, [option.id for option in known])
        if isinstance(value, bool):
            request = v1.SetSessionConfigOptionBoolean(session_id=self.id, config_id=option_id, value=value)
        else:
            request = v1.SetSessionConfigOptionValueId(session_id=self.id, config_id=option_id, value=value)
        answer = await self._link.call(SESSION_SET_CONFIG_OPTION, request)
        self.config_options = tuple(answer.config_options)

    async def fork(self) -> "Session":
        """Open a copy of this session; raises MissingCapability, SessionClosed and the errors of a call."""
        self._require_open()
        return await self._home.fork(self)

    async def close(self) -> None:
        """Let the agent put the session away; raises MissingCapability and the errors of a call."""
        await self._home.close(self)

    async def delete(self) -> None:
        """Let the agent forget the session; raises MissingCapability and the errors of a call."""
        await self._home.delete(self)

    async def set_title(self, title: str) -> str:
        """Give the session a title, and return the one that the agent has kept; raises MissingCapability."""
        return await self._home.set_title(self, title)

    async def archive(self) -> None:
        """Let the agent put the session away, and leave it out of lists; raises MissingCapability."""
        await self._home.archive(self)

    async def status(self) -> Literal["open", "saved"]:
        """Ask whether the agent has the session in memory; raises MissingCapability."""
        return await self._home.status(self)

    # ── for the rest of the client ──────────────────────────────────────────────────────────────

    @internal
    def receive(self, update: v1.SessionUpdate) -> Awaitable[None] | None:
        """Take an update from the agent."""
        if type(update) is v1.AgentMessageChunk and type(update.content) is v1.TextContent and update.meta is None:
            return self._deliver(Text(update.content.text, update))
        return self._deliver(self.note(update))

    @internal
    def find_subagent(self, session_id: str) -> SessionState | None:
        """Return the state of a subagent's session, also of a subagent's subagent; None where there is none."""
        return self._subagents.find(session_id)

    @internal
    def list_subagents(self) -> tuple[str, ...]:
        """Return the ids of the subagents' sessions for which something came."""
        return tuple(self._subagents.states)

    @internal
    def receive_from(self, child: SessionState, update: v1.SessionUpdate) -> Awaitable[None] | None:
        """Take an update of a subagent's session."""
        return self._deliver(self._subagents.event(child, update))

    @internal
    def tell(self, event: Event) -> None:
        """Add an event of our own."""
        self._deliver(event)

    @internal
    @contextmanager
    def replaying(self) -> Generator[None]:
        """Keep updates as the history, for the time of a load."""
        self._deliver = self.history.append
        try:
            yield
        finally:
            self._deliver = self.events_between_turns.append
            self.history[:] = drop_withdrawn(self.history)

    @internal
    async def unless_cancelled(self, work: Awaitable[T]) -> T | None:
        """Wait for an answer to the agent; None as soon as the turn is cancelled, or has failed."""
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
        """Take note that nothing comes for this session any more."""
        self._is_closed = True
        self._dismiss()
        if self.on_detach is not None:
            self.on_detach()

    async def _begin(self, progress: TurnProgress, request: v1.PromptRequest) -> None:
        self._require_open()
        if self._progress is not None and self._progress.is_left:
            await self._progress.wait_ended()
        if self._progress is not None:
            raise PromptRunning(self.id)
        self._require_open()
        self._progress = progress
        self._deliver = progress.put
        self._link.start(self._run(progress, request))

    async def _run(self, progress: TurnProgress, request: v1.PromptRequest) -> None:
        try:
            answer = await self._send(request)
        except DragomanError as error:
            self._end()
            if progress.is_cancelled and isinstance(error, RemoteError):
                progress.end("cancelled")  # what was aborted there came back as an error: no news to who cancelled it
            else:
                self._dismiss()
                progress.fail(error)
        else:
            self._end()
            progress.end(answer.stop_reason, answer.usage)

    async def _send(self, request: v1.PromptRequest) -> PromptResponse:
        await start_telemetry()
        with trace_prompt(self._link.agent_name, self.id) as operation:
            meta = operation.carry()
            traced = request if meta is None else msgspec.structs.replace(request, meta=meta)
            answer = await self._link.send(SESSION_PROMPT, traced)
            operation.note({"gen_ai.response.finish_reasons": [answer.stop_reason]})
            return answer

    def _end(self) -> None:
        self._progress = None
        self._deliver = self.events_between_turns.append

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
            raise SessionClosed(self.id)


def drop_withdrawn(events: Sequence[Event]) -> list[Event]:
    """Leave out the messages that the agent has withdrawn."""
    void = {event.message_id for event in events if isinstance(event, Withdrawn)}
    return [event for event in events if not _is_of(event, void)] if void else list(events)


def _is_of(event: Event, message_ids: Collection[str | None]) -> bool:
    update = getattr(event, "update", None)
    return isinstance(update, v1.AgentMessageChunk) and update.message_id in message_ids


def _drop(event: Event) -> None:
    del event
