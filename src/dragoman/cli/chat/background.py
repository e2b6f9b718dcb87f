"""The connection to the agent, in a thread of its own, so that a person at the prompt does not keep the agent waiting.

The main thread has the terminal and the signals. Everything else comes to it through one inbox: events, questions, the
end of the turn, and Ctrl-C.
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
    Decision,
    Elicit,
    Elicitation,
    Event,
    Policy,
    Question,
    RemoteAgent,
    Reply,
    Session,
    Turn,
    ask,
    connect,
)
from dragoman.client.servers import McpServers
from dragoman.errors import DragomanError
from dragoman.loop_thread import LoopThread
from dragoman.protocol import v1

T = TypeVar("T")


class TurnEvents(NamedTuple):
    """Events of the turn; the next are only read when `proceed` was called, so that nothing piles up."""

    events: Sequence[Event]
    proceed: Callable[[], None]


class AgentAsks(NamedTuple):
    """The agent asks for permission, or to know something; it is cancelled when the turn is."""

    question: Question | Elicitation
    answer: "Future[Any]"


class TurnEnded(NamedTuple):
    """The turn is over, well or not."""

    error: DragomanError | None


class Interrupted(NamedTuple):
    """Somebody pressed Ctrl-C."""


Item = TurnEvents | AgentAsks | TurnEnded | Interrupted


class AgentThread:
    """A connection to an agent, in a thread."""

    def __init__(self, agent: ChosenAgent, *, has_person: bool) -> None:
        self.inbox: SimpleQueue[Item] = SimpleQueue()
        """Its `put` may be called from a signal handler."""
        self._chosen = agent
        self._has_person = has_person
        self._caught_up = asyncio.Event()
        self._turns: set[asyncio.Task[None]] = set()

    @property
    def is_own(self) -> bool:
        """Whether it is dragoman's own agent."""
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
            with suppress(DragomanError):  # the person has left: how the agent ends is told to nobody
                self._leave()
        finally:
            self._thread.stop()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something there and wait for it; an interrupted wait cancels the work."""
        return self._thread.run(work)

    def start_turn(self, session: Session, prompt: Sequence[v1.ContentBlock]) -> None:
        """Begin a turn; its events come to the inbox, and `TurnEnded` at last."""

        def start() -> None:
            task = asyncio.ensure_future(self._run(session, prompt))
            self._turns.add(task)
            task.add_done_callback(self._turns.discard)

        self._thread.soon(start)

    def cancel(self, session: Session) -> None:
        """Cancel the turn; its end still comes to the inbox."""
        self._thread.soon(session.cancel)

    @asynccontextmanager
    async def _connected(self) -> AsyncGenerator[RemoteAgent]:
        self._caught_up.set()
        policy = ask(self._ask_person) if self._has_person else None
        elicit = self._inquire if self._has_person else None
        async with _connect(self._chosen, policy, elicit) as agent:
            yield agent
            for task in tuple(self._turns):
                task.cancel()

    async def _run(self, session: Session, prompt: Sequence[v1.ContentBlock]) -> None:
        error: DragomanError | None = None
        try:
            async with session.prompt(prompt) as turn:
                while events := await self._take(turn):
                    await self._hand_over(events)
        except DragomanError as failed:
            error = failed
        self._caught_up.set()
        self.inbox.put(TurnEnded(error))

    async def _take(self, turn: Turn) -> Sequence[Event]:
        self._caught_up.set()
        try:
            return await turn.take()
        finally:
            self._caught_up.clear()

    async def _hand_over(self, events: Sequence[Event]) -> None:
        taken = asyncio.Event()
        self.inbox.put(TurnEvents(events, lambda: self._thread.soon(taken.set)))
        await taken.wait()

    async def _ask_person(self, question: Question) -> Decision:
        return await self._ask(question)

    async def _inquire(self, elicitation: Elicitation) -> Reply:
        return await self._ask(elicitation)

    async def _ask(self, question: Question | Elicitation) -> Any:
        await self._catch_up()
        answer: Future[Any] = Future()
        self.inbox.put(AgentAsks(question, answer))
        return await asyncio.wrap_future(answer)

    async def _catch_up(self) -> None:
        """Wait until all that happened before is shown: a question makes sense only then."""
        while True:
            await self._caught_up.wait()
            for _ in range(3):  # who waits for events is woken in one of the next rounds of the loop
                await asyncio.sleep(0)
            if self._caught_up.is_set():
                return


def answer(asks: AgentAsks, value: Decision | Reply) -> None:
    """Give an answer, if it is still wanted."""
    with suppress(InvalidStateError, CancelledError):
        asks.answer.set_result(value)


def _connect(
    agent: ChosenAgent, policy: Policy | None, elicit: Elicit | None
) -> AbstractAsyncContextManager[RemoteAgent]:
    if agent.address is not None:
        return agent.address.connect(policy=policy, elicit=elicit)
    return connect(agent.command, policy=policy, elicit=elicit, protocol_version=agent.newest)


MAX_LISTED = 20


class SessionOpener:
    """Opens sessions in one directory, with the same MCP servers for each."""

    def __init__(self, background: AgentThread, cwd: Path, mcp: Sequence[Path]) -> None:
        self._background = background
        self.cwd = cwd
        self._servers: McpServers = list(mcp)

    def new(self) -> Session:
        """Open a new one."""
        return self._background.call(self._background.agent.new_session(self.cwd, mcp_servers=self._servers))

    def reopen(self, session_id: str) -> Session:
        """Open one that there was before: with its history, or without where the agent cannot replay it."""
        agent = self._background.agent
        opening = agent.reopen_session(session_id, self.cwd, replay=True, mcp_servers=self._servers)
        return self._background.call(opening)

    def newest(self) -> Session:
        """Open the last one of the directory; raises NothingToContinue."""
        return self.reopen(self._background.call(find_last_session(self._background.agent, self.cwd)))

    def listed(self) -> list[v1.SessionInfo]:
        """Return the last sessions of the directory, the newest first."""
        return self._background.call(self._list())

    async def _list(self) -> list[v1.SessionInfo]:
        found = [info async for info in self._background.agent.list_sessions(self.cwd)]
        found.sort(key=lambda info: info.updated_at or "", reverse=True)
        return found[:MAX_LISTED]
