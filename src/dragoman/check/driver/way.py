"""How lines get to the agent and back: the pipes of a process that we start, or an address."""

import asyncio
import os
from contextlib import suppress
from typing import Protocol

from dragoman.check.driver.group import left_behind
from dragoman.proc import Child
from dragoman.wire.framing import MAX_LINE_BYTES


class Way(Protocol):
    """Carries lines; what they say is not its business."""

    has_process: bool
    """Whether the agent is a process of ours, whose end can be seen."""

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        ...

    async def read(self) -> bytes | None:
        """Wait for the next line, without its end; None when there will be no more."""
        ...

    def close_input(self) -> None:
        """Let the agent read to the end."""
        ...

    async def exited(self, timeout_s: float) -> str | None:
        """Wait for the end of its process and say which: `exited 0`; None while it runs, or where there is none."""
        ...

    async def orphans(self, timeout_s: float) -> int:
        """Count those of the process group that are still there so long after the end of its process."""
        ...


class _Brake(asyncio.BaseProtocol):
    """Is on while the agent does not read what we say: until it does, it is not heard."""

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


class PipeWay:
    """The pipes of a child."""

    has_process = True

    def __init__(self, child: Child) -> None:
        self.child = child

    async def open(self) -> None:
        """Take the pipes over."""
        read_fd, write_fd = self.child.take_stdio()
        loop = asyncio.get_running_loop()
        self._lines = asyncio.StreamReader(limit=MAX_LINE_BYTES)
        self._input, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(self._lines), os.fdopen(read_fd, "rb", 0)
        )
        self._output, self._brake = await loop.connect_write_pipe(_Brake, os.fdopen(write_fd, "wb", 0))

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
        return await left_behind(self.child.pid, timeout_s)

    async def close(self) -> None:
        """Let go of the pipes and end the process, with all that it has started."""
        self._input.close()
        self._output.close()  # what is unsent goes when the process does
        await self.child.stop(grace_s=0.5)
