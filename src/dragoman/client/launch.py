"""Starting an agent and talking to it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.protocol.routes import Routes
from dragoman.wire import StdioTransport


@asynccontextmanager
async def launch(command: Sequence[str], routes: Routes, *, cwd: str | None = None) -> AsyncGenerator[Connection]:
    """Start an agent and open a conversation with it; leaving stops the agent and all that it started.

    An agent is the user's own program and needs their keys and settings: it inherits the whole environment.
    Raises StartError; and ProcessDied from every call when the agent is gone.
    """
    async with Supervisor() as supervisor:
        child = await supervisor.start(command, cwd=cwd, inherit=EVERYTHING)
        read_fd, write_fd = child.take_stdio()
        async with Connection(StdioTransport(read_fd, write_fd, explain_end=child.death), routes) as connection:
            yield connection
