"""Starting an agent, and agreeing with it on how to talk."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Literal

from dragoman.client.agent import RemoteAgent
from dragoman.client.check import StrPath
from dragoman.client.elicitation import Elicit
from dragoman.client.greeting import Greeting, Watch
from dragoman.client.introduction import START_TIMEOUT_S, Counter, Provision
from dragoman.client.launch import split_words
from dragoman.client.policy import Policy, deny_all
from dragoman.client.problem import ConnectFailed, NotAnAgent, StartTimeout
from dragoman.errors import ConnectionClosed, ProcessDied
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.protocol.recorder import Recorder
from dragoman.wire import StdioTransport


@asynccontextmanager
async def connect(
    command: str | Sequence[str],
    *,
    cwd: StrPath | None = None,
    env: Mapping[str, str] | None = None,
    policy: Policy | None = None,
    files: Literal["read", "write"] | Provision | None = None,
    terminals: bool | Provision = False,
    elicit: Elicit | None = None,
    on_stderr: Callable[[bytes], None] | None = None,
    record: StrPath | None = None,
    watch: Watch | None = None,
    name: str = "dragoman",
    start_timeout_s: float = START_TIMEOUT_S,
) -> AsyncGenerator[RemoteAgent]:
    """Start an agent and agree with it on how to talk; leaving stops the agent and all that it started.

    `command` is a list of words, or a string that is split as a shell splits it; no shell runs it.
    An agent is the user's own program and needs their keys and settings: it inherits the whole environment, and `env`
    comes on top. `policy` decides what it may do; without one it may do nothing that it asks for. `files` and
    `terminals` let it read or write files, and run commands, through us. `elicit` is asked what it wants to know from
    a person. `on_stderr` gets what the agent writes there, its log mostly; the end of it is kept in any case.
    `record` is a file to be made, which gets every message of both sides: `read_trajectory` reads it. `watch` sees
    every line of both sides as it passes, secrets and all.

    Raises CommandNotFound or StartError when there is nothing to start, NotAnAgent when it does not speak ACP,
    StartTimeout, WrongVersion, and NeedsLogin when it wants a login before anything else.
    """
    words = split_words(command)
    async with AsyncExitStack() as stack:
        counter = Counter(policy or deny_all(), elicit, stack)
        counter.provide(files, terminals)
        watches: list[Watch] = [] if watch is None else [watch]
        if record is not None:
            watches.append(stack.enter_context(Recorder(record, *words[:1])))
        supervisor = await stack.enter_async_context(Supervisor())
        directory = None if cwd is None else os.fspath(cwd)
        child = await supervisor.start(words, cwd=directory, env=env, inherit=EVERYTHING, on_stderr=on_stderr)
        greeting = Greeting(StdioTransport(*child.take_stdio(), explain_end=child.death), watches)
        yield await counter.introduce(greeting, _Started(child, greeting), name, start_timeout_s)


class _Started:
    """What was started, which may be anything."""

    def __init__(self, child: Child, greeting: Greeting) -> None:
        self.command = child.command
        self._child = child
        self._greeting = greeting

    def is_silent(self, timeout_s: float) -> ConnectFailed:
        if self._greeting.printed:
            return self.is_no_agent(f"printed what is not JSON-RPC, and nothing else, for {timeout_s:g} s")
        return StartTimeout(self.command[0], timeout_s, stderr_tail=self._child.stderr_tail)

    def is_no_agent(self, problem: str, died: ProcessDied | None = None) -> ConnectFailed:
        return NotAnAgent(self.command[0], problem, printed=self._greeting.printed, died=died)

    def is_gone(self, end: ConnectionClosed) -> ConnectFailed:
        return self.is_no_agent(f"ended before it answered: {end}", end if isinstance(end, ProcessDied) else None)
