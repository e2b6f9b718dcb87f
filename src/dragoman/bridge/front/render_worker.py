"""`python -m dragoman.bridge.front.render_worker SECONDS`: renders Markdown in a separate process.

A few thousand well-chosen characters can make a highlighter's regular expression run for ever. While it runs, no other
thread of its process does. In this process nothing else waits, and the kernel kills it with SIGALRM when its time is
up. The signal has no handler, so Python is not involved.

Requests arrive on stdin and answers go to stdout. Each is one frame: one byte (1 for highlighting), four bytes of
length, and the text.
"""

import signal
import sys
import time
from typing import BinaryIO

MAX_WORK_S = 2.5
"""Time limit of one text. The longest text needs a second, so a slower one hangs."""

COLOUR_S = 1.0
"""After this time the rest of the code is not highlighted."""

IDLE_S = 300
"""A worker without requests ends after this time. The next request starts a new one."""


def main(max_work_s: float) -> None:
    """Serve until the bridge closes stdin."""
    from dragoman.bridge.front.markdown import to_html  # here, because the bridge imports this module for its frames

    source, sink = sys.stdin.buffer, sys.stdout.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the bridge handles Ctrl-C and then closes stdin
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, IDLE_S)
    while (frame := read_frame(source)) is not None:
        coloured, text = frame
        signal.setitimer(signal.ITIMER_REAL, max_work_s)
        html = to_html(text, time.monotonic() + (COLOUR_S if coloured else -1))
        signal.setitimer(signal.ITIMER_REAL, IDLE_S)
        write_frame(sink, coloured, html)


def write_frame(stream: BinaryIO, coloured: bool, text: str) -> None:
    """Send one frame."""
    data = text.encode()
    stream.write(bytes([coloured]) + len(data).to_bytes(4, "big") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[bool, str] | None:
    """Return the next frame, or None if the other side closed the pipe."""
    head = stream.read(5)
    if len(head) < 5:
        return None
    size = int.from_bytes(head[1:], "big")
    data = stream.read(size)
    return (bool(head[0]), data.decode()) if len(data) == size else None


if __name__ == "__main__":
    main(float(sys.argv[1]))
