"""The keyboard while the agent has the word: nothing is echoed, and single keys can be read."""

import os
import select
import signal
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

WAIT_S = 0.1
"""How long to wait for a key before looking whether its question still stands."""

ESCAPE = "\x1b"


class Keys:
    """The terminal's input."""

    def __init__(self) -> None:
        self._fd = sys.stdin.fileno()

    @contextmanager
    def quiet(self) -> Generator[None]:
        """Echo nothing and give every key at once, until left; Ctrl-C stays a signal."""
        before = termios.tcgetattr(self._fd)
        self._hush()
        continued = signal.signal(signal.SIGCONT, self._continue)
        try:
            yield
        finally:
            signal.signal(signal.SIGCONT, continued)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, before)

    @contextmanager
    def loud(self) -> Generator[None]:
        """Within `quiet`, let a line be written as usual; Ctrl-C is an exception there."""
        hushed = termios.tcgetattr(self._fd)
        mode = termios.tcgetattr(self._fd)
        mode[3] |= termios.ECHO | termios.ICANON
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
        interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, interrupt)
            termios.tcsetattr(self._fd, termios.TCSADRAIN, hushed)

    def forget(self) -> None:
        """Drop what was typed until now: a question is only answered by who has seen it."""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    def read(self) -> str:
        """Return the next key, or nothing if none comes for a moment.

        What comes all at once is a paste, or a key that sends a sequence: it answers nothing.
        """
        ready, _, _ = select.select([self._fd], [], [], WAIT_S)
        if not ready:
            return ""
        typed = os.read(self._fd, 1024).decode(errors="replace")
        return typed if len(typed) == 1 else ""

    def _continue(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._hush()

    def _hush(self) -> None:
        mode = termios.tcgetattr(self._fd)
        mode[3] &= ~(termios.ECHO | termios.ICANON)
        mode[6][termios.VMIN], mode[6][termios.VTIME] = 1, 0
        termios.tcsetattr(self._fd, termios.TCSADRAIN, mode)
