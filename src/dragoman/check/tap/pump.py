"""A pump copies bytes from one descriptor to another, and puts a copy into the feed.

Only two pumps are between a client and its agent. They block in the kernel, each in its own thread, and do not change
the flags of the descriptors, because non-blocking mode would apply to every other holder of them. `splice` would avoid
the copies, but it needs pipes, and many clients use sockets. The copies are not the main cost of a message: a pump
copies gigabytes per second.
"""

import os
import select
import threading
from collections.abc import Callable

from dragoman.check.tap.feed import Feed, FrameKind
from dragoman.text import clean_text

STDERR = 2


def report_line(text: str) -> None:
    """Write a line to stderr if that is possible without waiting. Otherwise drop it."""
    poll = select.poll()
    poll.register(STDERR, select.POLLOUT)
    try:
        if any(events & select.POLLOUT for _, events in poll.poll(0)):
            os.write(STDERR, f"dragoman tap: {clean_text(text)}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return


READ_BYTES = 256 * 1024


class Pump:
    """Copies the bytes of one side to the other."""

    def __init__(self, source: int, target: int, kind: FrameKind, feed: Feed) -> None:
        self._source = source
        self._target = target
        self._kind = kind
        self._feed = feed
        self.broken = False
        """Whether the other side stopped reading."""

    def start(self, on_end: Callable[[], None]) -> threading.Thread:
        """Copy in a thread until either side ends, then call `on_end`."""
        thread = threading.Thread(target=self._run, args=(on_end,), name=f"tap {self._kind.name}", daemon=True)
        thread.start()
        return thread

    def _run(self, on_end: Callable[[], None]) -> None:
        source, target, kind, put = self._source, self._target, self._kind, self._feed.put
        while not self.broken and (data := read(source)):
            put(kind, data)  # first, because the answer could reach the feed before its request
            self.broken = not write(target, data)
        on_end()


def read(source: int) -> bytes:
    """Wait for bytes. Return no bytes at the end of the stream, for any reason."""
    while True:
        try:
            return os.read(source, READ_BYTES)
        except BlockingIOError:
            _wait(source, select.POLLIN)
        except OSError:
            return b""


def write(target: int, data: bytes) -> bool:
    """Write all bytes. Return False if the reader is gone."""
    left = data
    while left:
        try:
            written = os.write(target, left)
        except BlockingIOError:
            _wait(target, select.POLLOUT)
        except OSError:
            return False
        else:
            left = left[written:] if written < len(left) else b""
    return True


def wait_broken(target: int, wake: int) -> bool:
    """Wait until the reader of `target` is gone. Return False if `wake` ends first."""
    poll = select.poll()
    poll.register(target, 0)
    poll.register(wake, select.POLLIN)
    return wake not in {descriptor for descriptor, _ in poll.poll()}


def close_stream(descriptor: int) -> None:
    """Close a stream but keep its descriptor number in use, so that a pump never writes to another file."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _wait(descriptor: int, events: int) -> None:
    poll = select.poll()
    poll.register(descriptor, events)
    poll.poll()
