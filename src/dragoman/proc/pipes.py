"""The descriptors between us, a child and its warden."""

import contextlib
import fcntl
import os
import socket

STDOUT_PIPE_BYTES = 256 * 1024
"""The default of 64 KiB makes a chatty child and us take turns; more than this gains nothing."""


class Pipes:
    """Stdin, stdout and stderr of one child and the line to its warden, both ends of each until handed on."""

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
        os.set_blocking(self.stderr, False)
        _enlarge(self.stdout)

    def close_theirs(self) -> None:
        """Close the ends that the child and its warden have by now."""
        close_all(*self.theirs)
        self.theirs = ()

    def close(self) -> None:
        """Close every end that is still here."""
        self.close_theirs()
        self.line.close()
        close_all(self.stdin, self.stdout, self.stderr)


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
