"""One life of the agent: a process, its stdio, and how it ended."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from dragoman.bridge.hub.inspector import FROM_AGENT, TO_AGENT, Inspector
from dragoman.bridge.settings import AgentSpec, Settings
from dragoman.errors import ConnectionClosed
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.wire import Oversized, Receiver, StdioTransport

LAST_UNSENT_S = 0.3
"""When the bridge ends: for an agent to read what it was sent. This and the next two waits are long enough for an
agent that is alive, and leave the rest of three seconds to the journals."""

LAST_GRACE_S = 1.0
"""When the bridge ends: for an agent to end by itself once its stdin is closed."""

LAST_TERM_S = 0.5
"""When the bridge ends: for an agent to end after SIGTERM; then it is killed."""


class AgentProcess:
    """A running agent; made by `start_agent`."""

    def __init__(self, child: Child, settings: Settings, receiver: Receiver, inspector: Inspector) -> None:
        self.ended = asyncio.Event()
        """Set once it says nothing any more."""
        self._child = child
        self._stop_timeout_s = settings.stop_timeout_s
        self._receiver = receiver
        self._inspector = inspector
        self._transport = StdioTransport(*child.take_stdio(), max_line_bytes=settings.max_line_bytes)

    @property
    def unsent_bytes(self) -> int:
        """What it has not read yet."""
        return self._transport.unsent_bytes

    @property
    def stderr_tail(self) -> str:
        """The end of what it wrote to stderr."""
        return self._child.stderr_tail.strip()

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to listen."""
        self._transport.start(self, tasks)

    def write(self, line: bytes) -> None:
        """Say something to it."""
        self._inspector.note(TO_AGENT, [line])
        self._transport.write(line + b"\n")

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take what it says."""
        self._inspector.note(FROM_AGENT, lines)
        self._receiver.lines_received(lines)

    def input_ended(self, *, drained: bool) -> None:
        """Take note that it says nothing any more."""
        del drained
        self.ended.set()

    async def explain(self) -> ConnectionClosed:
        """Say how it ended."""
        return await self._child.death()

    async def stop(self) -> None:
        """End it, and all it has started."""
        await self._transport.close()
        await self._child.stop(grace_s=self._stop_timeout_s)
        self.ended.set()

    async def stop_soon(self) -> None:
        """End it, and all it has started, because the bridge ends: within two seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LAST_UNSENT_S):
                await self._transport.close()
        await self._child.stop(grace_s=min(LAST_GRACE_S, self._stop_timeout_s), term_s=LAST_TERM_S)
        self.ended.set()

    def kill(self) -> None:
        """Kill it, and all it has started, now."""
        self._child.kill()


async def start_agent(
    supervisor: Supervisor, spec: AgentSpec, settings: Settings, receiver: Receiver, inspector: Inspector
) -> AgentProcess:
    """Start an agent; raises StartError.

    It is the user's own program and needs their keys and settings: it inherits the whole environment.
    """
    child = await supervisor.start(spec.command, cwd=spec.cwd, env=spec.env, inherit=EVERYTHING)
    return AgentProcess(child, settings, receiver, inspector)
