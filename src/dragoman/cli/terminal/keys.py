"""Reads single keys at a terminal, without echo and without Enter."""

import asyncio
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

WAIT_S = 0.1
"""How long to wait for a key before checking whether the question was cancelled."""

ESCAPE = "\x1b"
END = "\x04"
"""Ctrl-D."""


class Keyboard:
    """The keyboard of `chat`, which the main thread reads while another thread serves the agent."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Disable echo and line buffering. Ctrl-C remains a signal."""
        before = termios.tcgetattr(self._fd)
        self._silence()
        continued = signal.signal(signal.SIGCONT, self._continue)
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, continued)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    @contextmanager
    def loud(self) -> Generator[None]:
        """Within `quiet`, read a line as usual. Here Ctrl-C raises KeyboardInterrupt."""
        silent = termios.tcgetattr(self._fd)
        mode = termios.tcgetattr(self._fd)
        mode[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
        interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, interrupt)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, silent)

    def drop_pending(self) -> None:
        """Drop the keys pressed before the question was visible."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def read(self) -> str:
        """Return the next key, or an empty string if none is pressed within a moment.

        Several characters at once are a paste or an escape sequence, and are ignored.
        """
        ready, _, _ = select.select([self._fd], [], [], WAIT_S)
        if not ready:
            return ""
        typed = os.read(self._fd, 1024).decode(errors="replace")
        return typed if len(typed) == 1 else ""

    def _continue(self, _number: int, _frame: FrameType | None) -> None:
        self._silence()

    def _silence(self) -> None:
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ECHO | termios.ICANON)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)


@contextmanager
def single_keys() -> Generator[None]:
    """Read keys without Enter inside this context. Drops keys pressed before the question was visible."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def read_key(descriptor: int) -> str:
    """Wait for the next key without blocking the loop. Return an empty string at the end of input."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
        return os.read(descriptor, 1).decode(errors="replace")
    except OSError:
        return ""
    finally:
        loop.remove_reader(descriptor)
