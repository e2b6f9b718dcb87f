"""A pump passes bytes from one descriptor to another as they come, and puts a copy into the feed.

Two pumps are all that stands between a client and its agent. They block in the kernel, each in a thread of its own,
and leave the flags of the descriptors alone: non-blocking mode would apply to every other holder of them. `splice`
would spare the copies, but it needs pipes, many clients give sockets, and the copies are not what a message costs: a
pump passes gigabytes a second.
"""

import os
import select
import threading
from collections.abc import Callable

from dragoman.check.tap.feed import Feed, FrameKind
from dragoman.text import clean_text

STDERR = 2


def report_line(text: str) -> None:
    """Write a line to stderr if that is possible at once: nobody has to read it, and nothing may wait for it."""
    poll = select.poll()
    poll.register(STDERR, select.POLLOUT)
    try:
        if any(events & select.POLLOUT for _, events in poll.poll(0)):
            os.write(STDERR, f"dragoman tap: {clean_text(text)}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return


READ_BYTES = 256 * 1024


class Pump:
    """Passes the bytes of one side to the other."""

    def __init__(self, source: int, target: int, kind: FrameKind, feed: Feed) -> None:
        self._source = source
        self._target = target
        self._kind = kind
        self._feed = feed
        self.broken = False
        """Whether the other side stopped reading."""

    def start(self, on_end: Callable[[], None]) -> threading.Thread:
        """Pump in a thread until either side ends, and then call."""
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
    """Wait for bytes; return none at the end of the stream, however it ended."""
    while True:
        try:
            return os.read(source, READ_BYTES)
        except BlockingIOError:
            _wait(source, select.POLLIN)
        except OSError:
            return b""


def write(target: int, data: bytes) -> bool:
    """Write all bytes; False when the reader is gone."""
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
    """Wait until the reader of `target` is gone, and return True; return False when `wake` ends first."""
    poll = select.poll()
    poll.register(target, 0)
    poll.register(wake, select.POLLIN)
    return wake not in {descriptor for descriptor, _ in poll.poll()}


def let_go(descriptor: int) -> None:
    """End a stream of ours; its number stays taken, so that a pump still at it never writes to something else."""
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nothing, descriptor, inheritable=False)
    os.close(nothing)


def _wait(descriptor: int, events: int) -> None:
    poll = select.poll()
    poll.register(descriptor, events)
    poll.poll()
