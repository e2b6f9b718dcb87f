"""`python -m dragoman.runner PLACE [--map LOCAL=REMOTE]… [--env NAME]… -- CMD ARGS…`: an agent elsewhere, on our stdio.

The exit code is that of the agent, as `ssh` or `docker` tell it. All that it writes to stderr is passed on.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Sequence

from dragoman.errors import DragomanError
from dragoman.event_loop import Stopped, run
from dragoman.proc import EVERYTHING, Child, Supervisor
from dragoman.runner.paths import PathMap
from dragoman.runner.place import DOCKER_FAILED, RUNNER_PREFIX, SSH_LOST, BadPlace, Place, read_place
from dragoman.wire import Oversized, StdioTransport, Transport, take_stdio
from dragoman.wire.transport import HIGH_WATER_BYTES

_USAGE = 2
_CANNOT_RUN = 126


class _End:
    """One side of the agent's lines: each line is changed and passed to the other side."""

    def __init__(self, source: Transport, sink: Transport, change: Callable[[bytes], bytes]) -> None:
        self.ended = asyncio.Event()
        self._source = source
        self._sink = sink
        self._change = change

    def start(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to pass lines on."""
        self._tasks = tasks
        self._source.start(self, tasks)

    def lines_received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Pass lines on; those that are too long to be held are dropped, and named."""
        for line in lines:
            if isinstance(line, bytes):
                self._sink.write(self._change(line) + b"\n")
            else:
                _tell(f"a message of more than {line.max_bytes} bytes was dropped")
        if self._sink.unsent_bytes > HIGH_WATER_BYTES:
            self._source.pause_reading()
            self._tasks.create_task(self._read_on())

    def input_ended(self, *, was_file: bool) -> None:
        """Note the end of this side."""
        del was_file
        self.ended.set()

    async def _read_on(self) -> None:
        await self._sink.drained()
        self._source.resume_reading()


async def _pass(place: Place, command: Sequence[str], client: Transport) -> int:
    """Pass lines until either side ends; return the exit code of the agent."""
    paths = PathMap(place.paths)
    async with Supervisor() as supervisor:
        child = await supervisor.start(place.start_command(command), inherit=EVERYTHING, on_stderr=_show)
        agent = StdioTransport(*child.take_stdio())
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
        _tell(f"there is no connection to {place.target} any more, or there never was; ssh has said why")
    if place.kind == "docker" and code == DOCKER_FAILED:
        _tell(f"docker cannot run the image {place.target}, and has said why")
    return code


async def _exit_code(child: Child) -> int:
    ended = await child.stop()
    return 128 + ended.signal if ended.signal is not None else ended.code or 0


def _show(data: bytes) -> None:
    os.write(2, data)


def _tell(words: str) -> None:
    sys.stderr.write(f"{RUNNER_PREFIX}{words}\n")
    sys.stderr.flush()


def main(arguments: Sequence[str]) -> int:
    """Run an agent elsewhere."""
    cut = arguments.index("--")
    place, *options = arguments[:cut]
    pairs = list(zip(options[::2], options[1::2], strict=True))
    try:
        found = read_place(
            place,
            [value for name, value in pairs if name == "--map"],
            [value for name, value in pairs if name == "--env"],
        )
    except BadPlace as problem:
        _tell(str(problem))
        return _USAGE
    read_fd, write_fd = take_stdio()

    async def pass_all() -> int:
        return await _pass(found, arguments[cut + 1 :], StdioTransport(read_fd, write_fd))

    try:
        return run(pass_all())
    except Stopped as stopped:
        return 128 + stopped.signal_number
    except DragomanError as problem:
        _tell(str(problem))
        return _CANNOT_RUN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
