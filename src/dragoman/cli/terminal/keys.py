"""Single keys at a terminal: nothing is echoed, and a key counts without Enter."""

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
"""How long to wait for a key before looking whether its question still stands."""

ESCAPE = "\x1b"
END = "\x04"
"""Ctrl-D."""


class Keyboard:
    """The keyboard of `chat`, which reads it while its agent is served by another thread."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Echo nothing and give every key at once, until left; Ctrl-C stays a signal."""
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
        """Within `quiet`, let a line be written as usual; Ctrl-C is an exception there."""
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

    def forget(self) -> None:
        """Drop all keys until now: they were pressed before the question was seen."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def read(self) -> str:
        """Return the next key, or nothing if none comes for a moment.

        Several characters at once are a paste, or a key that sends a sequence: they answer nothing.
        """
        ready, _, _ = select.select([self._fd], [], [], WAIT_S)
        if not ready:
            return ""
        typed = os.read(self._fd, 1024).decode(errors="replace")
        return typed if len(typed) == 1 else ""

    def _continue(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._silence()

    def _silence(self) -> None:
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ECHO | termios.ICANON)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)


@contextmanager
def single_keys() -> Generator[None]:
    """Let each key come at once, until left; keys from before the question was seen are dropped."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor, termios.TCSAFLUSH)
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


async def read_key(descriptor: int) -> str:
    """Wait for the next key, without holding up the loop; the end of the input is an empty text."""
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
