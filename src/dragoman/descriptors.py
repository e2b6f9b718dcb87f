"""The file descriptors of a process: stdin, stdout and stderr, which cron may leave closed, and the limit on them."""

import io
import os
import select
import sys
from typing import Any, TextIO

_MODEST_LIMIT = 10_240
"""The highest limit that macOS accepts, although it reports a higher one."""

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


def open_missing() -> None:
    """Open /dev/null in place of a closed stdin, stdout or stderr.

    Otherwise the next file or socket to be opened gets that number and is mistaken for the stream.
    """
    for number, (name, mode) in enumerate(_STREAMS):
        if not is_open(number):
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest free number is this one
            setattr(sys, name, os.fdopen(number, mode, closefd=False))


class CompleteOutput(io.RawIOBase):
    """A descriptor whose `write` writes all of its data.

    Python's own streams lose the rest of a short write when they are unbuffered (PYTHONUNBUFFERED): a signal that
    arrives while a pipe is full causes one. They also lose it when the descriptor is non-blocking, as every
    process that shares a terminal or pipe can make it. Node.js does.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor

    def fileno(self) -> int:
        """Return the descriptor."""
        return self._descriptor

    def isatty(self) -> bool:
        """Return whether the descriptor is a terminal."""
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # pyright: ignore[reportIncompatibleMethodOverride] -- the base class names a type that exists only in stubs
        """Write all of the data, and wait while the descriptor is full."""
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                select.select([], [self._descriptor], [])
        return len(data)


def complete_outputs() -> None:
    """Make sys.stdout and sys.stderr write all of their data, see `CompleteOutput`."""
    for name in ("stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__") or not isinstance(stream, io.TextIOWrapper):
            continue  # replaced by a test or a host program
        raw: Any = CompleteOutput(stream.fileno())
        complete = io.TextIOWrapper(
            raw if stream.write_through else io.BufferedWriter(raw),
            encoding=stream.encoding,
            errors=stream.errors,
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )
        setattr(sys, name, complete)


def is_open(descriptor: int) -> bool:
    """Return whether a descriptor is open in this process."""
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def raise_fd_limit() -> int:
    """Raise the soft limit on open files as far as the hard limit allows. Return the new limit."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (hard, _MODEST_LIMIT):
        if wanted != resource.RLIM_INFINITY and wanted > soft != resource.RLIM_INFINITY:
            try:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            except (OSError, ValueError):
                continue
            return wanted
    return soft
