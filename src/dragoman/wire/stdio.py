"""Lines over a pair of descriptors: our own stdin and stdout, or the pipes of a child.

Descriptors that the system can poll (pipes, sockets, terminals) are switched to non-blocking while we
have them, and back afterwards, because their open file may be shared with others. Files and devices such
as /dev/null are always ready: they are read a block per loop tick and written at once.
"""

import asyncio
import os
import stat
import sys
from collections import deque
from collections.abc import Awaitable, Callable

from dragoman.errors import ConnectionClosed
from dragoman.wire.framing import MAX_LINE_BYTES, LineSplitter
from dragoman.wire.transport import CLOSE_TIMEOUT_S, Outbox, Receiver

READ_BYTES = 64 * 1024
"""One read: a few hundred messages, about a quarter of a millisecond of work before the loop turns again."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def take_stdio() -> tuple[int, int]:
    """Take stdin and stdout for the protocol alone, and give the descriptors to speak it on.

    Whatever else in this process, or in a child of it, prints to stdout reaches stderr from now on, and
    whoever reads stdin finds it empty.
    """
    sys.stdout.flush()
    read_fd, write_fd = os.dup(_STDIN), os.dup(_STDOUT)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, _STDIN)
    try:
        os.dup2(_STDERR, _STDOUT)
    except OSError:  # started without a stderr
        os.dup2(null, _STDOUT)
        os.dup2(null, _STDERR)
    os.close(null)
    return read_fd, write_fd


class StdioTransport:
    """Carries lines over two descriptors, which it owns from now on."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        explain_end: Callable[[], Awaitable[ConnectionClosed]] | None = None,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._explain_end = explain_end
        self._splitter = LineSplitter(max_line_bytes)
        self._outbox = Outbox()
        self._unsent: deque[memoryview] = deque()
        self._reading = False
        self._paused = False
        self._write_error: OSError | None = None
        self._closed = False
        self.can_write = True
        self._was_blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        self._reads_file = not _is_pollable(read_fd)
        for fd in (read_fd, write_fd):
            if _is_pollable(fd):
                os.set_blocking(fd, False)

    @property
    def unsent_bytes(self) -> int:
        return self._outbox.unsent_bytes

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        del tasks
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._reading = True
        self._watch_input()

    def write(self, lines: bytes | bytearray) -> None:
        if not self.can_write:
            return
        rest = memoryview(lines)
        if not self._unsent:
            rest = self._write_some(rest)
            if not rest:
                return
            self._loop.add_writer(self._write_fd, self._on_writable)
        self._unsent.append(rest)
        self._outbox.add(len(rest))

    async def drained(self) -> None:
        await self._outbox.drained()

    def pause_reading(self) -> None:
        self._paused = True
        if self._reading and not self._reads_file:
            self._loop.remove_reader(self._read_fd)

    def resume_reading(self) -> None:
        if self._paused:
            self._paused = False
            if self._reading:
                self._watch_input()

    async def explain_end(self) -> ConnectionClosed:
        if self._explain_end is not None:
            return await self._explain_end()
        if self._write_error is not None:
            return ConnectionClosed(f"the other side no longer reads: {self._write_error.strerror}")
        return ConnectionClosed("the other side closed the connection")

    async def close(self) -> None:
        if self._closed:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._outbox.drained(below=0)
        except TimeoutError:
            pass
        finally:
            self._let_go()

    def _watch_input(self) -> None:
        if self._reads_file:
            self._loop.call_soon(self._on_readable)
        else:
            self._loop.add_reader(self._read_fd, self._on_readable)

    def _on_readable(self) -> None:
        if not self._reading or self._paused:
            return
        try:
            data = os.read(self._read_fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # a terminal or a socket that was torn away ends like any other
            data = b""
        if not data:
            self._end_input()
            return
        self._receiver.lines_received(self._splitter.feed(data))
        if self._reads_file and not self._paused:
            self._loop.call_soon(self._on_readable)

    def _end_input(self) -> None:
        if not self._reading:
            return
        self._reading = False
        if not self._reads_file:
            self._loop.remove_reader(self._read_fd)
        self._receiver.lines_received(self._splitter.finish())
        self._receiver.input_ended(was_file=self._reads_file)

    def _write_some(self, data: memoryview) -> memoryview:
        try:
            return data[os.write(self._write_fd, data) :]
        except BlockingIOError:
            return data
        except OSError as error:
            self._fail_writing(error)
            return data[:0]

    def _on_writable(self) -> None:
        while self._unsent:
            before = self._unsent[0]
            rest = self._write_some(before)
            if self._write_error is not None:
                return
            if rest:
                self._unsent[0] = rest
                self._outbox.sent(len(before) - len(rest))
                return
            self._unsent.popleft()
            self._outbox.sent(len(before))
        self._loop.remove_writer(self._write_fd)

    def _fail_writing(self, error: OSError) -> None:
        """Nobody reads any more: what they still have to say cannot be answered, so the input ends as well."""
        self._write_error = error
        self.can_write = False
        if self._unsent:
            self._loop.remove_writer(self._write_fd)
        self._unsent.clear()
        self._outbox.close()
        self._loop.call_soon(self._end_input)

    def _let_go(self) -> None:
        self._closed = True
        self.can_write = False
        if self._reading and not self._reads_file:
            self._loop.remove_reader(self._read_fd)
        self._reading = False
        if self._unsent:
            self._loop.remove_writer(self._write_fd)
            self._unsent.clear()
        self._outbox.close()
        for fd, was_blocking in self._was_blocking.items():
            os.set_blocking(fd, was_blocking)
            os.close(fd)


def _is_pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
