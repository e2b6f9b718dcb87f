"""Enter, on the terminal where `dragoman serve` runs."""

import asyncio
import os
import sys
from collections.abc import Callable

PAUSE_S = 1.0
"""How often to look whether we are in the foreground again; reading before that would stop the whole process."""

_CHUNK = 1024


class EnterKey:
    """Calls back for each line that a person enters; does nothing when stdin is no terminal."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._pressed = pressed
        self._loop = asyncio.get_running_loop()

    def watch(self) -> None:
        """Begin to watch."""
        try:
            if sys.stdin.isatty():
                self._loop.add_reader(sys.stdin.fileno(), self._read)
        except (AttributeError, ValueError):  # closed
            return

    def _read(self) -> None:
        descriptor = sys.stdin.fileno()
        try:
            if os.tcgetpgrp(descriptor) != os.getpgrp():
                self._loop.remove_reader(descriptor)
                self._loop.call_later(PAUSE_S, self.watch)
                return
            data = os.read(descriptor, _CHUNK)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._loop.remove_reader(descriptor)
        elif b"\n" in data:
            self._pressed()
