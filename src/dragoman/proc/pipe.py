"""The stdout of a child, flowing into whoever wants it, on the event loop."""

import asyncio
import os
from collections.abc import Callable

from dragoman.proc.child import Child

READ_BYTES = 64 * 1024
"""One pipe full at a time: a child that floods takes turns with the rest of the loop."""

CATCH_UP_READS = 16
"""A megabyte, the most that a pipe of an unprivileged user holds."""

Sink = Callable[[bytes], bool]
"""Takes some bytes, and says whether it wants more."""


class Pipe:
    """Takes the stdio of a child: its stdin is empty from now on, and what it writes goes to `sink`."""

    def __init__(self, child: Child, sink: Sink) -> None:
        self._fd, stdin = child.take_stdio()
        os.close(stdin)
        os.set_blocking(self._fd, False)
        self._sink = sink
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    async def wait_ended(self) -> None:
        """Wait until all is read, or nobody wants more."""
        await self._ended.wait()

    def catch_up(self) -> None:
        """Take what was written until now, without waiting for more."""
        for _ in range(CATCH_UP_READS):
            if self._ended.is_set() or not self._read():
                break

    def close(self) -> None:
        """Take what there is and let go."""
        self.catch_up()
        self._let_go()

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return False
        if not data or not self._sink(data):
            self._let_go()
        return bool(data)

    def _let_go(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
