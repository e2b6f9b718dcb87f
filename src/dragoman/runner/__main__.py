"""`python -m dragoman.runner PLACE [OPTION VALUE]… -- CMD …`: run an agent in another place.

The options are `--map LOCAL=REMOTE`, `--pass-env NAME` and `--writable PATH`, each any number of times.

The exit code is the agent's, as `ssh` or `docker` report it. The agent's stderr is passed on.
"""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from dragoman.cancellation import finish
from dragoman.errors import DragomanError
from dragoman.event_loop import run
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.proc.command import without_secrets
from dragoman.runner.paths import PathMap
from dragoman.runner.place import DOCKER_FAILED, RUNNER_PREFIX, SSH_LOST, InvalidPlaceError, Place, read_place
from dragoman.store.opening import NODE_VARIABLE
from dragoman.wire import Oversized, StdioTransport, Transport, claim_stdio
from dragoman.wire.transport import HIGH_WATER_BYTES

_USAGE = 2
_CANNOT_RUN = 126


class _End:
    """Reads the lines of one side, translates them and passes them to the other side."""

    def __init__(self, source: Transport, sink: Transport, change: Callable[[bytes], bytes]) -> None:
        self.ended = asyncio.Event()
        self._source = source
        self._sink = sink
        self._change = change

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Start to read the source."""
        self._tasks = tasks
        self._source.start(self, tasks)

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Pass lines to the other side. Drop and report lines that are too long."""
        for line in lines:
            if isinstance(line, bytes):
                self._sink.write(self._change(line) + b"\n")
            else:
                _report(f"a message of more than {line.max_bytes} bytes was dropped")
        if self._sink.unsent_bytes > HIGH_WATER_BYTES:
            self._source.pause_reading()
            self._tasks.create_task(self._resume_when_drained())

    def input_ended(self, *, was_file: bool) -> None:
        """Note the end of this side."""
        del was_file
        self.ended.set()

    async def _resume_when_drained(self) -> None:
        await self._sink.drained()
        self._source.resume_reading()


async def _pass(place: Place, command: Sequence[str], client: Transport) -> int:
    """Pass lines until one side ends. Return the exit code of the agent."""
    paths = PathMap(place.paths)
    async with Supervisor() as supervisor, AsyncExitStack() as stack:
        if place.kind == "sandbox":
            child = await stack.enter_async_context(_sandboxed(supervisor, place, command))
        else:
            child = await supervisor.start(place.start_command(command), inherit=EVERYTHING, on_stderr=_show)
        agent = StdioTransport.for_child(child)
        async with asyncio.TaskGroup() as tasks:
            from_client = _End(client, agent, paths.to_agent)
            from_agent = _End(agent, client, paths.to_client)
            from_agent.start(tasks)
            if first := place.first_line(os.environ):
                agent.write(first)
            from_client.start(tasks)
            ends = [asyncio.create_task(end.ended.wait()) for end in (from_client, from_agent)]
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in ends:
                end.cancel()
            await agent.close()
            code = await _exit_code(child)
            await client.close()
    if place.kind == "ssh" and code == SSH_LOST:
        _report(f"the connection to {place.target} failed or was lost; see the message from ssh")
    if place.kind == "docker" and code == DOCKER_FAILED:
        _report(f"docker cannot run the image {place.target}; see its message")
    return code


@asynccontextmanager
async def _sandboxed(supervisor: Supervisor, place: Place, command: Sequence[str]) -> AsyncGenerator[Child]:
    """Start an agent in the sandbox, with network, and rename new active files after its end.

    Raises SandboxUnavailableError or StartError.
    """
    from dragoman.sandbox.sandbox import Sandbox, SandboxUnavailableError, find_problem

    if (problem := await find_problem(supervisor)) is not None:
        raise SandboxUnavailableError(f"the agent was not started, because there is no sandbox: {problem}")
    directory, *listed = place.writable
    sandbox = Sandbox("workspace+network", [directory], writable=listed)
    passed = {name: os.environ[name] for name in place.variables if name in os.environ}
    child = await supervisor.start(
        sandbox.wrap(command, directory), env={**without_secrets(), **passed}, inherit=(), on_stderr=_show
    )
    try:
        yield child
    finally:
        await finish(child.stop())
        for old, new in sandbox.rename_new_files():
            _report(f"the sandbox renamed a new file that programs run or obey by themselves: {old} to {new}")


async def _exit_code(child: Child) -> int:
    ended = await child.stop()
    return 128 + ended.signal if ended.signal is not None else ended.code or 0


def _show(data: bytes) -> None:
    os.write(2, data)


def _report(text: str) -> None:
    sys.stderr.write(f"{RUNNER_PREFIX}{text}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Run an agent in another place, and return its exit code."""
    cut = arguments.index("--")
    place, *options = arguments[:cut]
    pairs = list(zip(options[::2], options[1::2], strict=True))
    try:
        found = read_place(
            place,
            [value for name, value in pairs if name == "--map"],
            [*(value for name, value in pairs if name == "--pass-env"), *({NODE_VARIABLE} & os.environ.keys())],
            [value for name, value in pairs if name == "--writable"],
        )
    except InvalidPlaceError as problem:
        _report(str(problem))
        return _USAGE
    read_fd, write_fd = claim_stdio()

    async def pass_all() -> int:
        return await _pass(found, arguments[cut + 1 :], StdioTransport(read_fd, write_fd))

    try:
        return run(pass_all())
    except DragomanError as problem:
        _report(str(problem))
        return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
