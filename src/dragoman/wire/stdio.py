"""Lines over a pair of file descriptors: our own stdin and stdout, or the pipes of a child.

Descriptors that the system can poll (pipes, sockets, terminals) are switched to non-blocking while we use them, and
back afterwards, because other processes may share the open file. Files and devices such as /dev/null are always ready.
They are read one block per loop tick and written at once.

A child's output ends with EOF or with its exit, whichever comes first. Processes that the child started may hold the
pipe open long after its exit. The lines that the child wrote before its exit are still delivered.
"""

import asyncio
import os
import stat
import sys
from collections import deque
from typing import Protocol, Self

from dragoman.errors import ConnectionClosedError
from dragoman.wire.framing import LineSplitter
from dragoman.wire.transport import CLOSE_TIMEOUT_S, Outbox, Receiver

READ_BYTES = 64 * 1024
"""The size of one read: a few hundred messages, or about 0.25 ms of work before other tasks run."""

EXIT_DRAIN_S = 0.2
"""How long output may follow the exit of a child: long enough for a filter such as `tee` to pass on the last lines."""

EXIT_DRAIN_READS = 16
"""The number of reads after that time: 1 MiB in total, the most that an unprivileged user's pipe holds."""

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def claim_stdio() -> tuple[int, int]:
    """Reserve stdin and stdout for the protocol. Return new descriptors for reading and writing.

    From now on, other output of this process and its children to stdout reaches stderr, and all other readers find
    stdin empty.
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


class ChildProcess(Protocol):
    """A process that we started, such as `dragoman.proc.Child`."""

    def claim_stdio(self) -> tuple[int, int]:
        """Return the descriptors for reading its stdout and writing its stdin. The caller owns them."""
        ...

    async def wait(self) -> object:
        """Wait until the process has exited."""
        ...

    async def death(self) -> ConnectionClosedError:
        """Return the error that explains the end of the process."""
        ...


class StdioTransport:
    """Carries lines over two descriptors, which it owns from now on."""

    def __init__(
        self,
        read_fd: int,
        write_fd: int,
        *,
        child: ChildProcess | None = None,
        splitter: LineSplitter | None = None,
    ) -> None:
        self.can_write = True
        self._input = _LineInput(read_fd, splitter or LineSplitter())
        self._write_fd = write_fd
        self._child = child
        self._exit_watch: asyncio.Task[None] | None = None
        self._outbox = Outbox()
        self._unsent: deque[memoryview] = deque()
        self._write_error: OSError | None = None
        self._closed = False
        self._was_blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        for fd in (read_fd, write_fd):
            if _is_pollable(fd):
                os.set_blocking(fd, False)

    @classmethod
    def for_child(cls, child: ChildProcess, *, splitter: LineSplitter | None = None) -> Self:
        """Create a transport over the stdio of a child. It ends when the child's output ends or the child exits."""
        return cls(*child.claim_stdio(), child=child, splitter=splitter)

    @property
    def unsent_bytes(self) -> int:
        return self._outbox.unsent_bytes

    def start(self, receiver: Receiver, tasks: asyncio.TaskGroup) -> None:
        self._loop = asyncio.get_running_loop()
        self._input.start(receiver)
        if self._child is not None:
            self._exit_watch = tasks.create_task(self._end_after_exit(self._child))

    def write(self, lines: bytes | bytearray | memoryview) -> None:
        if not self.can_write:
            return
        rest = memoryview(lines)
        if self._unsent:
            # Write now, because a busy sender may not yield to the event loop for a long time.
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

    async def explain_end(self) -> ConnectionClosedError:
        if self._child is not None:
            return await self._child.death()
        if self._write_error is not None:
            return ConnectionClosedError(f"the other side no longer reads: {self._write_error.strerror}")
        return ConnectionClosedError("the other side closed the connection")

    async def close(self) -> None:
        if self._closed:
            return
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await self._outbox.drained(below=0)
        except TimeoutError:
            pass
        finally:
            self._release()

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
        """End the input as well, because a side that does not read cannot be answered."""
        self._write_error = error
        self.can_write = False
        if self._unsent:
            self._loop.remove_writer(self._write_fd)
        self._unsent.clear()
        self._outbox.close()
        self._loop.call_soon(self._input.end)

    async def _end_after_exit(self, child: ChildProcess) -> None:
        await child.wait()
        await asyncio.sleep(EXIT_DRAIN_S)
        self._input.end_after_exit()

    def _release(self) -> None:
        self._closed = True
        if self._exit_watch is not None:
            self._exit_watch.cancel()
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
    """Reads a descriptor and delivers its lines while the receiver accepts them."""

    def __init__(self, fd: int, splitter: LineSplitter) -> None:
        self._fd = fd
        self._is_file = not _is_pollable(fd)
        self._splitter = splitter
        self._is_reading = False
        self._is_paused = False
        self._reads_left: int | None = None
        """The number of reads after the writer has exited, if the input is still open. None while the writer runs."""

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
            if self._reads_left is not None:
                self._loop.call_soon(self._read_rest)
            elif self._is_reading:
                self._watch()

    def end_after_exit(self) -> None:
        """Deliver what is left in the pipe, then report the end. A paused receiver gets both when it resumes."""
        self._reads_left = EXIT_DRAIN_READS
        self._read_rest()

    def end(self) -> None:
        """Deliver the last line if it has no newline, then report the end."""
        if self.stop():
            self._receiver.lines_received(self._splitter.finish())
            self._receiver.input_ended(was_file=self._is_file)

    def stop(self) -> bool:
        """Stop reading. Return whether reading was active."""
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
        if self._read() and self._is_file and not self._is_paused:
            self._loop.call_soon(self._on_readable)

    def _read_rest(self) -> None:
        while self._reads_left and self._read():
            self._reads_left -= 1
        if not self._is_paused:
            self.end()

    def _read(self) -> bool:
        """Read once. Return whether there was something to read."""
        if not self._is_reading or self._is_paused:
            return False
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return False
        except OSError:  # a terminal or socket that was disconnected counts as ended
            data = b""
        if not data:
            self.end()
            return False
        self._receiver.lines_received(self._splitter.feed(data))
        return True


def _is_pollable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)
