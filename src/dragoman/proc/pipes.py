"""The pipes of a child: opening them, reading its output on the event loop, and keeping the end of the output."""

import asyncio
import codecs
import contextlib
import fcntl
import os
import socket
from collections.abc import Callable

STDOUT_PIPE_BYTES = 256 * 1024
"""With the default of 64 KiB, a chatty child and we keep waiting for each other. A larger pipe gains nothing."""

STDERR_TAIL_BYTES = 16 * 1024
"""Enough for a traceback or the usage text of a program. More would drown the error that shows it."""

READ_BYTES = 64 * 1024
"""One full pipe at a time, so that a child that floods its output does not block the event loop."""

CATCH_UP_READS = 16
"""Reads 1 MiB, the most that an unprivileged user's pipe holds. This covers all output before a child's end."""

_CONTINUATION = bytes(range(0x80, 0xC0))
_LONGEST = 3
"""The most bytes of a UTF-8 character after its first byte."""

Sink = Callable[[bytes], bool]
"""Receives bytes and returns whether it wants more."""


class ChildPipes:
    """The stdin, stdout and stderr of one child and the connection to its monitor. Owns both ends until handed over."""

    def __init__(self) -> None:
        """Open all of them, or none.

        Raises OSError if too many files are open.
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

    def close_child_ends(self) -> None:
        """Close the ends that the child and its monitor have received."""
        close_all(*self.theirs)
        self.theirs = ()

    def close(self) -> None:
        """Close every end that is still open here."""
        self.close_child_ends()
        self.line.close()
        close_all(self.stdin, self.stdout, self.stderr)


class PipeReader:
    """Reads a descriptor on the event loop and passes the bytes to `sink` while it wants more. Owns the descriptor."""

    def __init__(self, descriptor: int, sink: Sink) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._sink = sink
        self._ended = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(descriptor, self._read)

    async def wait_ended(self) -> None:
        """Wait until everything is read, or the sink wants no more."""
        await self._ended.wait()

    def catch_up(self) -> None:
        """Read the bytes that were written until now, without waiting for more."""
        for _ in range(CATCH_UP_READS):
            if self._ended.is_set() or not self._read():
                return

    def close(self) -> None:
        """Read the available bytes and stop reading."""
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
    """Reads the stderr of a child at all times, so that no child blocks on it, and keeps the end of the output."""

    def __init__(self, descriptor: int, listener: Callable[[bytes], None] | None) -> None:
        super().__init__(descriptor, self._append)
        self._listener = listener
        self._kept = bytearray()
        self._cut = False

    @property
    def tail(self) -> str:
        """The end of the output, starting with a whole line if possible."""
        end = bytes(self._kept[-STDERR_TAIL_BYTES:])
        if self._cut or len(self._kept) > STDERR_TAIL_BYTES:
            _, newline, lines = end.partition(b"\n")
            end = lines if newline and lines else end
        return end.decode(errors="replace")

    def _append(self, data: bytes) -> bool:
        self._kept += data
        if len(self._kept) > 2 * STDERR_TAIL_BYTES:  # not at every write, because this moves all kept bytes
            del self._kept[:-STDERR_TAIL_BYTES]
            self._cut = True
        self._pass_on(data)
        return True

    def _pass_on(self, data: bytes) -> None:
        if self._listener is None:
            return
        try:
            self._listener(data)
        except Exception as error:  # noqa: BLE001 -- a caller's function, whose error must not stop the reading
            self._listener = None
            message = "on_stderr raised, and will not be called again"
            self._loop.call_exception_handler({"message": message, "exception": error})


class OutputTail:
    """Receives any number of bytes and keeps the last of them as text."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.total_bytes = 0
        self._kept = bytearray()

    def add(self, data: bytes) -> bool:
        """Append bytes. Always return True, because more is always wanted."""
        self.total_bytes += len(data)
        self._kept += data
        if len(self._kept) > 2 * self.max_bytes + _LONGEST:  # not at every write, because this moves all kept bytes
            del self._kept[: len(self._kept) - self.max_bytes]
        return True

    def text(self, *, final: bool) -> tuple[str, bool]:
        """Return the end of the text, and whether anything before it is missing.

        The text begins and ends at character boundaries. Unless `final`, an incomplete last character is held back.
        """
        kept = bytes(self._kept[max(len(self._kept) - self.max_bytes, 0) :])
        cut = len(kept) < self.total_bytes
        text = codecs.getincrementaldecoder("utf-8")("replace").decode(skip_continuation(kept) if cut else kept, final)
        # Invalid UTF-8 becomes longer: each invalid byte is shown as a replacement character of three bytes.
        encoded = text.encode()
        if len(encoded) <= self.max_bytes:
            return text, cut
        return skip_continuation(encoded[len(encoded) - self.max_bytes :]).decode(), True


def skip_continuation(data: bytes | bytearray) -> bytes:
    """Drop the remaining bytes of a character that was cut in two at the beginning."""
    return bytes(data[:_LONGEST].lstrip(_CONTINUATION) + data[_LONGEST:])


def close_all(*descriptors: int) -> None:
    """Close file descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def _open_pipe(opened: contextlib.ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    opened.callback(close_all, reading, writing)
    return reading, writing


def _enlarge(pipe: int) -> None:
    # Linux only. The system refuses it if the user has many big pipes already. Then the pipe keeps its size.
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        with contextlib.suppress(OSError):
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, STDOUT_PIPE_BYTES)
