"""The pipes to a child: opening them, reading its output on the event loop, and keeping the end of it."""

import asyncio
import codecs
import contextlib
import fcntl
import os
import socket
from collections.abc import Callable

STDOUT_PIPE_BYTES = 256 * 1024
"""The default of 64 KiB makes a chatty child and us take turns; more than this gains nothing."""

STDERR_TAIL_BYTES = 16 * 1024
"""Enough for a traceback or the usage text of a program; more would drown the error that shows it."""

READ_BYTES = 64 * 1024
"""One pipe full at a time: a child that floods takes turns with the rest of the loop."""

CATCH_UP_READS = 16
"""A megabyte, the most that a pipe of an unprivileged user holds: all that was written before a child's end."""

_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST = 3
"""Bytes of a character in UTF-8 that are not its first."""

Sink = Callable[[bytes], bool]
"""Takes some bytes, and returns whether it wants more."""


class ChildPipes:
    """Stdin, stdout and stderr of one child and the line to its monitor, both ends of each until handed on."""

    def __init__(self) -> None:
        """Open them all, or none.

        Raises OSError when there are too many open files.
        """
        with contextlib.ExitStack() as opened:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            opened.callback(ours.close)
            opened.callback(theirs.close)
            pairs = [_open_pipe(opened) for _ in range(3)]
            opened.pop_all()
        ours.setblocking(False)
        self.line = ours
        (stdin, self.stdin), (self.stdout, stdout), (self.stderr, stderr) = pairs
        self.theirs = (theirs.detach(), stdin, stdout, stderr)
        _enlarge(self.stdout)

    def close_theirs(self) -> None:
        """Close the ends that the child and its monitor have by now."""
        close_all(*self.theirs)
        self.theirs = ()

    def close(self) -> None:
        """Close every end that is still here."""
        self.close_theirs()
        self.line.close()
        close_all(self.stdin, self.stdout, self.stderr)


class PipeReader:
    """Reads a descriptor on the event loop, which it owns, and gives the bytes to `sink` while that wants more."""

    def __init__(self, descriptor: int, sink: Sink) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._sink = sink
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    async def wait_ended(self) -> None:
        """Wait until all is read, or the sink wants no more."""
        await self._ended.wait()

    def catch_up(self) -> None:
        """Take the bytes that were written until now, without waiting for more."""
        for _ in range(CATCH_UP_READS):
            if self._ended.is_set() or not self._read():
                return

    def close(self) -> None:
        """Take the available bytes and stop reading."""
        self.catch_up()
        self._close()

    def _read(self) -> bool:
        try:
            data = os.read(self._descriptor, READ_BYTES)
        except BlockingIOError:
            return False
        if not data or not self._sink(data):
            self._close()
        return bool(data)

    def _close(self) -> None:
        if not self._ended.is_set():
            self._ended.set()
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)


class StderrReader(PipeReader):
    """Reads the stderr of a child always, so that no child blocks on it, and keeps its end."""

    def __init__(self, descriptor: int, listener: Callable[[bytes], None] | None) -> None:
        super().__init__(descriptor, self._take)
        self._listener = listener
        self._kept = bytearray()
        self._cut = False

    @property
    def tail(self) -> str:
        """The end of the output, beginning with a whole line where there is one."""
        end = bytes(self._kept[-STDERR_TAIL_BYTES:])
        if self._cut or len(self._kept) > STDERR_TAIL_BYTES:
            _, newline, lines = end.partition(b"\n")
            end = lines if newline and lines else end
        return end.decode(errors="replace")

    def _take(self, data: bytes) -> bool:
        self._kept += data
        if len(self._kept) > 2 * STDERR_TAIL_BYTES:  # seldom, because each time moves it all
            del self._kept[:-STDERR_TAIL_BYTES]
            self._cut = True
        self._pass_on(data)
        return True

    def _pass_on(self, data: bytes) -> None:
        if self._listener is None:
            return
        try:
            self._listener(data)
        except Exception as error:  # noqa: BLE001 -- a caller's function: its fault must not stop the reading
            self._listener = None
            message = "on_stderr raised, and will not be called again"
            self._loop.call_exception_handler({"message": message, "exception": error})


class OutputTail:
    """Takes any number of bytes and gives the last of them as text."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.total_bytes = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> bool:
        """Take bytes; more is always wanted."""
        self.total_bytes += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.max_bytes + _LONGEST:  # seldom, because each time moves it all
            del self._kept[: len(self._kept) - self.max_bytes]
        return True

    def text(self, *, final: bool) -> tuple[str, bool]:
        """Return the end of it, and whether something before it is missing.

        It is cut between two characters, and unless `final` one that has come only in part is held back.
        """
        kept = bytes(self._kept[max(len(self._kept) - self.max_bytes, 0) :])
        cut = len(kept) < self.total_bytes
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(skip_continuation(kept) if cut else kept, final)
        # Bytes that are no UTF-8 become longer: each is shown by a replacement character of three.
        encoded = text.encode()
        if len(encoded) <= self.max_bytes:
            return text, cut
        return skip_continuation(encoded[len(encoded) - self.max_bytes :]).decode(), True


def skip_continuation(data: bytes | bytearray) -> bytes:
    """Drop the rest of a character that was cut in two at the beginning."""
    return bytes(data[:_LONGEST].lstrip(_CONTINUATION) + data[_LONGEST:])


def close_all(*descriptors: int) -> None:
    """Close descriptors of ours."""
    for descriptor in descriptors:
        os.close(descriptor)


def _open_pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    opened.callback(close_all, reading, writing)
    return reading, writing


def _enlarge(pipe: int) -> None:
    # Linux only, and refused when the user has many big pipes already; then it stays as it is.
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, STDOUT_PIPE_BYTES)
