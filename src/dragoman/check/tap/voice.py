"""What a tap itself has to say, on stderr."""

import os
import select

STDERR = 2


def say(text: str) -> None:
    """Write a line if it can be taken at once: nobody has to read what we say, and nothing may wait for it."""
    poll = select.poll()
    poll.register(STDERR, select.POLLOUT)
    try:
        if any(events & select.POLLOUT for _, events in poll.poll(0)):
            os.write(STDERR, f"dragoman tap: {text}\n".encode("utf-8", "backslashreplace"))
    except OSError:
        return
