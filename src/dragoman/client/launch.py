"""Starting an agent and talking to it."""

import shlex
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from dragoman.errors import StartError
from dragoman.proc import EVERYTHING, Supervisor
from dragoman.protocol.connection import Connection
from dragoman.protocol.routes import Routes
from dragoman.wire import StdioTransport


@asynccontextmanager
async def launch(command: str | Sequence[str], routes: Routes, *, cwd: str | None = None) -> AsyncGenerator[Connection]:
    """Start an agent and open a conversation with it; leaving stops the agent and all that it started.

    An agent is the user's own program and needs their keys and settings: it inherits the whole environment.
    Raises StartError; and ProcessDied from every call when the agent is gone.
    """
    async with Supervisor() as supervisor:
        child = await supervisor.start(split_words(command), cwd=cwd, inherit=EVERYTHING)
        read_fd, write_fd = child.take_stdio()
        async with Connection(StdioTransport(read_fd, write_fd, explain_end=child.death), routes) as connection:
            yield connection


def split_words(command: str | Sequence[str]) -> Sequence[str]:
    """Return a command as its words; a string is split as a shell splits it, and no shell runs it.

    Raises StartError when a quote of it is not closed.
    """
    if not isinstance(command, str):
        return command
    try:
        return shlex.split(command)
    except ValueError as error:
        # The whole string may hold a secret: only the name of the program is told.
        name = command.split(maxsplit=1)[0]
        raise StartError(name, f"the command cannot be split into words ({error}); give it as a list") from None
