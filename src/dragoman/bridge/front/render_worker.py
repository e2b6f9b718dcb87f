"""`python -m dragoman.bridge.front.render_worker`: renders Markdown in a process of its own.

The regular expressions of a code highlighter can be held up for ever by a few thousand well-chosen characters, and
while one runs no other thread of its process does. Here nothing else waits, and the kernel ends the process when its
time is up: an alarm that nobody handles needs no help from Python.

Requests come on stdin and answers go to stdout, a frame each: one byte (1: with colours), four bytes of length, the
text.
"""

import signal
import sys
import time
from typing import BinaryIO

MAX_WORK_S = 2.5
"""The longest text takes a second; one that takes longer is stuck."""

COLOUR_S = 1.0
"""After this time the rest of the code is not coloured."""

IDLE_S = 300
"""A worker without requests ends after this time; the next request starts another."""


def main() -> None:
    """Serve until the bridge closes stdin."""
    from dragoman.bridge.front.markdown import to_html  # here, because the bridge imports this module for its frames

    source, sink = sys.stdin.buffer, sys.stdout.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the bridge's to hear; it then closes stdin
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, IDLE_S)
    while (frame := read_frame(source)) is not None:
        coloured, text = frame
        signal.setitimer(signal.ITIMER_REAL, MAX_WORK_S)
        html = to_html(text, time.monotonic() + (COLOUR_S if coloured else -1))
        signal.setitimer(signal.ITIMER_REAL, IDLE_S)
        write_frame(sink, coloured, html)


def write_frame(stream: BinaryIO, coloured: bool, text: str) -> None:
    """Send one frame."""
    data = text.encode()
    stream.write(bytes([coloured]) + len(data).to_bytes(4, "big") + data)
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[bool, str] | None:
    """Return the next frame; None when the other side is gone."""
    head = stream.read(5)
    if len(head) < 5:
        return None
    size = int.from_bytes(head[1:], "big")
    data = stream.read(size)
    return (bool(head[0]), data.decode()) if len(data) == size else None


if __name__ == "__main__":
    main()
