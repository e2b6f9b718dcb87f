"""A session and a turn without `async`: see `dragoman.client.sync`."""

from collections import deque
from typing import Literal, Self

from dragoman.client.capability_check import Prompt
from dragoman.client.entities import Entities
from dragoman.client.events import Event
from dragoman.client.result import TurnResult
from dragoman.client.session import Session
from dragoman.client.tool_call import ToolCallState
from dragoman.client.turn import Turn
from dragoman.loop_thread import LoopThread
from dragoman.protocol import v1


class SyncSession:
    """A `Session` whose methods wait; `session` is the one behind it, and has its state."""

    def __init__(self, loop: LoopThread, session: Session) -> None:
        self.session = session
        self.id = session.id
        self.cwd = session.cwd
        self.additional_directories = session.additional_directories
        self.mcp_servers = session.mcp_servers
        self._loop = loop

    def __repr__(self) -> str:
        return repr(self.session).replace("Session", "SyncSession", 1)

    @property
    def title(self) -> str | None:
        """The title, if the agent gave one."""
        return self.session.title

    @property
    def updated_at(self) -> str | None:
        """When the agent changed it last, if it said."""
        return self.session.updated_at

    @property
    def modes(self) -> v1.SessionModeState | None:
        """The modes on offer and the current one."""
        return self.session.modes

    @property
    def config_options(self) -> tuple[v1.SessionConfigOption, ...]:
        """The options, with their values."""
        return self.session.config_options

    @property
    def commands(self) -> tuple[v1.AvailableCommand, ...]:
        """The slash commands on offer."""
        return self.session.commands

    @property
    def usage(self) -> v1.UsageUpdate | None:
        """The size of the context and the cost, if the agent tells them."""
        return self.session.usage

    @property
    def plan(self) -> tuple[v1.PlanEntry, ...]:
        """The agent's plan."""
        return self.session.plan

    @property
    def tool_calls(self) -> dict[str, ToolCallState]:
        """Every tool call, by its id, with all that was said of it."""
        return self.session.tool_calls

    @property
    def entities(self) -> Entities:
        """Its compactions, its subagents and the messages between them, by their ids."""
        return self.session.entities

    @property
    def history(self) -> list[Event]:
        """What a load replayed, in order, without the messages that were withdrawn."""
        return self.session.history

    @property
    def events_between_turns(self) -> deque[Event]:
        """The last events that came outside of any turn."""
        return self.session.events_between_turns

    @property
    def is_busy(self) -> bool:
        """Whether a turn is running."""
        return self.session.is_busy

    def prompt(self, prompt: Prompt) -> "SyncTurn":
        """Say something; the events of the turn that follows are read with `for`, and the last one is `Done`."""
        return SyncTurn(self._loop, self._loop.run(self._open(prompt)))

    def run(self, prompt: Prompt, *, timeout_s: float | None = None) -> TurnResult:
        """Say something and return the whole turn: text, tool calls, changed files, usage, stop reason and error."""
        return self._loop.run(self.session.run(prompt, timeout_s=timeout_s))

    def ask(self, prompt: Prompt) -> str:
        """Say something and return the text of the answer."""
        return self._loop.run(self.session.ask(prompt))

    def cancel(self) -> None:
        """Cancel the running turn, from any thread."""
        self._loop.soon(self.session.cancel)

    def set_mode(self, mode_id: str) -> None:
        """Switch to another mode."""
        self._loop.run(self.session.set_mode(mode_id))

    def set_config_option(self, option_id: str, value: str | bool) -> None:
        """Set an option."""
        self._loop.run(self.session.set_config_option(option_id, value))

    def fork(self) -> "SyncSession":
        """Open a copy of this session."""
        return SyncSession(self._loop, self._loop.run(self.session.fork()))

    def close(self) -> None:
        """Let the agent put the session away."""
        self._loop.run(self.session.close())

    def delete(self) -> None:
        """Let the agent forget the session."""
        self._loop.run(self.session.delete())

    def set_title(self, title: str) -> str:
        """Give the session a title, and return the one that the agent has kept."""
        return self._loop.run(self.session.set_title(title))

    def archive(self) -> None:
        """Let the agent put the session away, and leave it out of lists."""
        self._loop.run(self.session.archive())

    def status(self) -> Literal["open", "saved"]:
        """Ask whether the agent has the session in memory."""
        return self._loop.run(self.session.status())

    async def _open(self, prompt: Prompt) -> Turn:
        return self.session.prompt(prompt)


class SyncTurn:
    """A `Turn` that is read with `for`; a reader who stops cancels it. With `with`, its end is waited for there."""

    def __init__(self, loop: LoopThread, turn: Turn) -> None:
        self.turn = turn
        self._loop = loop
        self._events: deque[Event] = deque()

    def __repr__(self) -> str:
        return repr(self.turn).replace("Turn", "SyncTurn", 1)

    @property
    def waiting(self) -> int:
        """How many events wait to be read."""
        return len(self._events) + self.turn.waiting

    @property
    def is_held(self) -> bool:
        """Whether the agent is made to wait, because so much waits to be read."""
        return self.turn.is_held

    @property
    def is_over(self) -> bool:
        """Whether the turn has come to its end, or never began."""
        return self.turn.is_over

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        if not self._events:
            try:
                self._events.extend(self._loop.run(self.turn.take()))
            except BaseException:
                self.close()
                raise
        if not self._events:
            raise StopIteration
        return self._events.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def take(self) -> list[Event]:
        """Wait for the next event and return it with all that wait behind it; nothing at the end."""
        taken = list(self._events) or self._loop.run(self.turn.take())
        self._events.clear()
        return taken

    def result(self, *, timeout_s: float | None = None) -> TurnResult:
        """Read the turn to its end and return it as one value, as `Turn.result` does."""
        return self._loop.run(self.turn.result(timeout_s=timeout_s))

    def cancel(self) -> None:
        """Cancel this turn if it runs, from any thread."""
        self._loop.soon(self.turn.cancel)

    def close(self) -> None:
        """Leave: cancel the turn if it still runs, and wait for its end. Raises CancelIgnored."""
        self._loop.run(self.turn.aclose())
