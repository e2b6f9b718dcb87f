"""Lines to and from the agent, over the pipes of a process that we start, or over a connection to a URL."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Protocol

from dragoman.check.inbox import Inbox
from dragoman.proc import Child
from dragoman.wire.framing import MAX_LINE_BYTES
from dragoman.wire.stdio import EXIT_DRAIN_S
from dragoman.wire.transport import Transport

POLL_S = 0.02
PROCESSES = Path("/proc")
STATE, GROUP = 0, 2
"""Fields of /proc/PID/stat after the name of the program."""

DEAD = ("Z", "X")
"""States of a process that has exited and was not waited for. In a container, its parent may never do that."""


async def count_left_behind(group: int, timeout_s: float) -> int:
    """Count the processes of a group that still run after a timeout. Return immediately when all have exited.

    A child with its own session is not in the group, because it is meant to continue.
    """
    until = time.monotonic() + timeout_s
    while (count := _count(group)) and time.monotonic() < until:  # noqa: ASYNC110 -- the processes do not notify us when they exit
        await asyncio.sleep(POLL_S)
    return count


def _count(group: int) -> int:
    """Count the running members. On a system without /proc all of them count as one."""
    if not _has_members(group):
        return 0
    if not PROCESSES.is_dir():
        return 1
    members = [fields for fields in map(_fields, PROCESSES.glob("[0-9]*/stat")) if fields[GROUP:][:1] == [str(group)]]
    return sum(fields[STATE] not in DEAD for fields in members)


def _has_members(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _fields(path: Path) -> list[str]:
    try:
        return path.read_text(errors="replace").rpartition(")")[2].split()
    except OSError:  # it has exited since
        return []


class ProbeTransport(Protocol):
    """Carries lines to and from the agent without reading them."""

    has_process: bool
    """Whether the agent is our child process, so that its exit is known."""

    @property
    def stderr_tail(self) -> str:
        """The end of its stderr. Empty if it is not available."""
        ...

    def send(self, data: bytes) -> None:
        """Send bytes unchanged."""
        ...

    async def read(self) -> bytes | None:
        """Wait for the next line, without its newline. Return None at the end of the output."""
        ...

    def close_input(self) -> None:
        """Close the agent's stdin."""
        ...

    async def exited(self, timeout_s: float) -> str | None:
        """Wait for the end of its process and return the event, such as `exited 0`. Return None if it still runs."""
        ...

    async def orphans(self, timeout_s: float) -> int:
        """Count the processes of its group that still run this long after its exit."""
        ...


class _Brake(asyncio.BaseProtocol):
    """Pauses our reading while the agent does not read."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.released.set()

    def pause_writing(self) -> None:
        self.released.clear()

    def resume_writing(self) -> None:
        self.released.set()

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.released.set()


class PipeTransport:
    """The pipes of a child."""

    has_process = True

    def __init__(self, child: Child) -> None:
        self.child = child

    @property
    def stderr_tail(self) -> str:
        return self.child.stderr_tail

    async def open(self) -> None:
        """Claim the child's pipes."""
        read_fd, write_fd = self.child.claim_stdio()
        loop = asyncio.get_running_loop()
        self._lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        self._input, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._lines), os.fdopen(read_fd, "rb", 0)
        )
        self._output, self._brake = await loop.connect_write_pipe(_Brake, os.fdopen(write_fd, "wb", 0))
        self._exit_watch = asyncio.create_task(self._end_after_exit())

    def send(self, data: bytes) -> None:
        if not self._output.is_closing():
            self._output.write(data)

    async def read(self) -> bytes | None:
        await self._brake.released.wait()
        try:
            line = await self._lines.readline()
        except ValueError:
            return None
        return line.removesuffix(b"\n") if line else None

    def close_input(self) -> None:
        self._output.close()

    async def exited(self, timeout_s: float) -> str | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                ended = await self.child.wait()
                return f"exited {ended.code if ended.signal is None else -ended.signal}"
        return None

    async def orphans(self, timeout_s: float) -> int:
        return await count_left_behind(self.child.pid, timeout_s)

    async def _end_after_exit(self) -> None:
        """End the output even if a process started by the agent still holds it open."""
        await self.child.wait()
        await asyncio.sleep(EXIT_DRAIN_S)
        self._input.close()

    async def close(self) -> None:
        """Close the pipes and end the process with everything that it started."""
        self._exit_watch.cancel()
        self._input.close()
        self._output.close()  # unsent bytes are dropped with the process
        await self.child.stop(grace_s=0.5)


class UrlTransport:
    """A transport to a URL that is read line by line."""

    has_process = False
    stderr_tail = ""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self.inbox = Inbox(transport)
        self.read = self.inbox.read

    def send(self, data: bytes) -> None:
        self._transport.write(data)

    def close_input(self) -> None:
        """Do nothing, because a connection has no separate input to close."""

    async def exited(self, timeout_s: float) -> str | None:
        del timeout_s
        return None

    async def orphans(self, timeout_s: float) -> int:
        del timeout_s
        return 0


@asynccontextmanager
async def open_url(url: str, token: str | None) -> AsyncGenerator[UrlTransport]:
    """Connect to the agent at a URL. Raises AddressError."""
    from dragoman.protocol.url import open_url as open_transport

    transport = await open_transport(url, token=token)
    probe = UrlTransport(transport)
    async with asyncio.TaskGroup() as tasks:
        transport.start(probe.inbox, tasks)
        try:
            yield probe
        finally:
            await transport.close()
