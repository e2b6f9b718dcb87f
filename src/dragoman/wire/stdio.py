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
from dragoman.wire.framing import LineSplitter
from dragoman.wire.transport import CLOSE_TIMEOUT_S, Outbox, Receiver

READ_BYTES = 64 * 1024
"""One read: a few hundred messages, about a quarter of a millisecond of work before the loop turns again."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def take_stdio() -> tuple[int, int]:
    """Take stdin and stdout for the protocol alone, and give the descriptors to speak it on.

    From now on, other output of this process and of its children to stdout reaches stderr, and stdin is empty
    for all other readers.
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
        splitter: LineSplitter | None = None,
    ) -> None:
        self.can_write = True
        self._input = _LineInput(read_fd, splitter or LineSplitter())
        self._write_fd = write_fd
        self._explain_end = explain_end
        self._outbox = Outbox()
        self._unsent: deque[memoryview] = deque()
        self._write_error: OSError | None = None
        self._closed = False
        self._was_blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        for fd in (read_fd, write_fd):
            if _is_pollable(fd):
                os.set_blocking(fd, False)

    @property
    def unsent_bytes(self) -> int:
        return self._outbox.unsent_bytes

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        del tasks
        self._loop = asyncio.get_running_loop()
        self._input.start(receiver)

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if not self.can_write:
            return
        rest = memoryview(lines)
        if self._unsent:
            # A busy sender may not let the loop turn for long, while the other side has nothing to read.
            self._on_writable()
            if not self.can_write:
                return
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
        self._input.pause()

    def resume_reading(self) -> None:
        self._input.resume()

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
        """End the input as well: a side that does not read cannot be answered."""
        self._write_error = error
        self.can_write = False
        if self._unsent:
            self._loop.remove_writer(self._write_fd)
        self._unsent.clear()
        self._outbox.close()
        self._loop.call_soon(self._input.end)

    def _let_go(self) -> None:
        self._closed = True
        self.can_write = False
        self._input.stop()
        if self._unsent:
            self._loop.remove_writer(self._write_fd)
            self._unsent.clear()
        self._outbox.close()
        for fd, was_blocking in self._was_blocking.items():
            os.set_blocking(fd, was_blocking)
            os.close(fd)


class _LineInput:
    """Reads a descriptor, and delivers its lines while the receiver wants them."""

    def __init__(self, fd: int, splitter: LineSplitter) -> None:
        self._fd = fd
        self._is_file = not _is_pollable(fd)
        self._splitter = splitter
        self._is_reading = False
        self._is_paused = False

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._loop = asyncio.get_running_loop()
        self._is_reading = True
        self._watch()

    def pause(self) -> None:
        self._is_paused = True
        if self._is_reading and not self._is_file:
            self._loop.remove_reader(self._fd)

    def resume(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._is_reading:
                self._watch()

    def end(self) -> None:
        """Deliver the rest without a newline, and tell the end."""
        if self.stop():
            self._receiver.lines_received(self._splitter.finish())
            self._receiver.input_ended(was_file=self._is_file)

    def stop(self) -> bool:
        """Read no more; returns whether it did until now."""
        was_reading, self._is_reading = self._is_reading, False
        if was_reading and not self._is_file:
            self._loop.remove_reader(self._fd)
        return was_reading

    def _watch(self) -> None:
        if self._is_file:
            self._loop.call_soon(self._on_readable)
        else:
            self._loop.add_reader(self._fd, self._on_readable)

    def _on_readable(self) -> None:
        if not self._is_reading or self._is_paused:
            return
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return
        except OSError:  # a terminal or a socket that was torn away ends like any other
            data = b""
        if not data:
            self.end()
            return
        self._receiver.lines_received(self._splitter.feed(data))
        if self._is_file and not self._is_paused:
            self._loop.call_soon(self._on_readable)


def _is_pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
