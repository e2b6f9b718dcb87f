"""The stderr of a child: always drained, so that no child blocks on it, and its end kept."""

import asyncio
import os
from collections.abc import Callable

TAIL_BYTES = 16 * 1024
"""Enough for a traceback or the usage text of a program; more would drown the error that shows it."""

READ_BYTES = 64 * 1024
"""One pipe full at a time: a child that floods its stderr takes turns with the rest of the loop."""

CATCH_UP_READS = 16
"""A megabyte, the most that a pipe of an unprivileged user holds: all that was written before a child's end."""


class Stderr:
    """Drains a descriptor on the event loop and keeps the end of what came."""

    def __init__(self, descriptor: int, listener: Callable[[bytes], None] | None) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._listener = listener
        self._kept = bytearray()
        self._cut = False
        self._loop.add_reader(descriptor, self._read)

    @property
    def closed(self) -> bool:
        """Whether no more will come."""
        return self._descriptor < 0

    @property
    def tail(self) -> str:
        """The end of what came, beginning with a whole line where there is one."""
        end = bytes(self._kept[-TAIL_BYTES:])
        if self._cut or len(self._kept) > TAIL_BYTES:
            _, newline, lines = end.partition(b"\n")
            end = lines if newline and lines else end
        return end.decode(errors="replace")

    def catch_up(self) -> None:
        """Take what was written until now, without waiting for more."""
        for _ in range(CATCH_UP_READS):
            if self.closed or not self._read():
                return

    def close(self) -> None:
        """Take what there is and stop reading."""
        self.catch_up()
        self._close()

    def _close(self) -> None:
        if not self.closed:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data:
            self._close()
            return False
        self._keep(data)
        self._pass_on(data)
        return True

    def _keep(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * TAIL_BYTES:
            del self._kept[:-TAIL_BYTES]
            self._cut = True

    def _pass_on(self, data: bytes) -> None:
        if self._listener is None:
            return
        try:
            self._listener(data)
        except Exception as error:  # noqa: BLE001 -- a caller's function: its fault must not stop the draining
            self._listener = None
            message = "on_stderr raised, and will not be called again"
            self._loop.call_exception_handler({"message": message, "exception": error})
