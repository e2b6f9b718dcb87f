"""The connection to the agent, in its own thread, so that waiting for the user does not block the agent.

The main thread has the terminal and the signals. One inbox carries everything to it: events, questions, the end of the
turn and Ctrl-C.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Self, TypeVar

from dragoman.cli.agent_choice import ChosenAgent
from dragoman.cli.session_choice import find_last_session
from dragoman.client import (
    AgentConnection,
    Elicitation,
    ElicitationHandler,
    ElicitationResponse,
    Session,
    Turn,
    connect,
)
from dragoman.client.events import Event
from dragoman.client.policies import Decision, PermissionQuestion, Policy, ask_user
from dragoman.client.services.servers import McpServers
from dragoman.errors import DragomanError
from dragoman.loop_thread import LoopThread
from dragoman.protocol import v1

T = TypeVar("T")


class TurnEvents(NamedTuple):
    """Events of the turn. The thread reads more only after `proceed` is called, so the queue stays short."""

    events: Sequence[Event]
    proceed: Callable[[], None]


class AgentAsks(NamedTuple):
    """The agent asks for permission or for input. The question is cancelled with its turn."""

    question: PermissionQuestion | Elicitation
    answer: "Future[Any]"


class TurnEnded(NamedTuple):
    """The turn is over, with an error or without."""

    error: DragomanError | None


class Interrupted(NamedTuple):
    """The user pressed Ctrl-C."""


Item = TurnEvents | AgentAsks | TurnEnded | Interrupted


class AgentThread:
    """A connection to an agent that runs in a thread."""

    def __init__(self, agent: ChosenAgent, *, is_interactive: bool) -> None:
        self.inbox: SimpleQueue[Item] = SimpleQueue()
        """`put` may be called from a signal handler."""
        self._chosen = agent
        self._is_interactive = is_interactive
        self._caught_up = asyncio.Event()
        self._turns: set[asyncio.Task[None]] = set()

    @property
    def is_own(self) -> bool:
        """Whether this is dragoman's own agent."""
        return self._chosen.is_own

    def __enter__(self) -> Self:
        self._thread = LoopThread("agent")
        try:
            self.agent, self._leave = self._thread.enter(self._connected())
        except BaseException:
            self._thread.stop()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        try:
            with suppress(DragomanError):  # the user has left, so errors at exit are not shown
                self._leave()
        finally:
            self._thread.stop()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the thread and wait for it. An interrupted wait cancels the coroutine."""
        return self._thread.run(work)

    def start_turn(self, session: Session, prompt: Sequence[v1.ContentBlock]) -> None:
        """Start a turn. Its events arrive in the inbox, followed by `TurnEnded`."""

        def start() -> None:
            task = asyncio.ensure_future(self._run(session, prompt))
            self._turns.add(task)
            task.add_done_callback(self._turns.discard)

        self._thread.soon(start)

    def cancel(self, session: Session) -> None:
        """Cancel the turn. Its end still arrives in the inbox."""
        self._thread.soon(session.cancel)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[AgentConnection]:
        self._caught_up.set()
        policy = ask_user(self._ask_user) if self._is_interactive else None
        elicit = self._inquire if self._is_interactive else None
        async with _connect(self._chosen, policy, elicit) as agent:
            yield agent
            for task in tuple(self._turns):
                task.cancel()

    async def _run(self, session: Session, prompt: Sequence[v1.ContentBlock]) -> None:
        error: DragomanError | None = None
        try:
            async with session.prompt(prompt) as turn:
                while events := await self._next_events(turn):
                    await self._hand_over(events)
        except DragomanError as failed:
            error = failed
        self._caught_up.set()
        self.inbox.put(TurnEnded(error))

    async def _next_events(self, turn: Turn) -> Sequence[Event]:
        self._caught_up.set()
        try:
            return await turn.next_batch()
        finally:
            self._caught_up.clear()

    async def _hand_over(self, events: Sequence[Event]) -> None:
        shown = asyncio.Event()
        self.inbox.put(TurnEvents(events, lambda: self._thread.soon(shown.set)))
        await shown.wait()

    async def _ask_user(self, question: PermissionQuestion) -> Decision:
        return await self._ask(question)

    async def _inquire(self, elicitation: Elicitation) -> ElicitationResponse:
        return await self._ask(elicitation)

    async def _ask(self, question: PermissionQuestion | Elicitation) -> Any:
        await self._catch_up()
        answer: Future[Any] = Future()
        self.inbox.put(AgentAsks(question, answer))
        return await asyncio.wrap_future(answer)

    async def _catch_up(self) -> None:
        """Wait until earlier events are shown. A question makes sense only after them."""
        while True:
            await self._caught_up.wait()
            for _ in range(3):  # a task that waits for events wakes up in one of the next rounds
                await asyncio.sleep(0)
            if self._caught_up.is_set():
                return


def answer(asks: AgentAsks, value: Decision | ElicitationResponse) -> None:
    """Answer a question, unless it was cancelled."""
    with suppress(InvalidStateError, CancelledError):
        asks.answer.set_result(value)


def _connect(
    agent: ChosenAgent, policy: Policy | None, elicit: ElicitationHandler | None
) -> AbstractAsyncContextManager[AgentConnection]:
    if agent.address is not None:
        return agent.address.connect(policy=policy, elicit=elicit)
    return connect(agent.command, policy=policy, elicit=elicit, protocol_version=agent.newest)


MAX_LISTED = 20


class SessionOpener:
    """Opens sessions in one directory, each with the same MCP servers."""

    def __init__(self, background: AgentThread, cwd: Path, mcp: Sequence[Path]) -> None:
        self._background = background
        self.cwd = cwd
        self._servers: McpServers = list(mcp)

    def new(self) -> Session:
        """Open a new session."""
        return self._background.call(self._background.agent.new_session(self.cwd, mcp_servers=self._servers))

    def reopen(self, session_id: str) -> Session:
        """Open an earlier session, with its history if the agent can replay it."""
        agent = self._background.agent
        opening = agent.reopen_session(session_id, self.cwd, replay=True, mcp_servers=self._servers)
        return self._background.call(opening)

    def newest(self) -> Session:
        """Open the last session of the directory. Raises NothingToContinueError."""
        return self.reopen(self._background.call(find_last_session(self._background.agent, self.cwd)))

    def listed(self) -> list[v1.SessionInfo]:
        """Return the latest sessions of the directory, newest first."""
        return self._background.call(self._list())

    async def _list(self) -> list[v1.SessionInfo]:
        found = [info async for info in self._background.agent.list_sessions(self.cwd)]
        found.sort(key=lambda info: info.updated_at or "", reverse=True)
        return found[:MAX_LISTED]
