"""Patience with an agent that is to open a session: it may take its time as long as it gives signs of it."""

import asyncio
from collections.abc import Callable


class Watch:
    """Looks again and again, until it is stopped, whether there was a sign since it last looked."""

    def __init__(self, silence_s: float, signs: Callable[[], object], on_silence: Callable[[], None]) -> None:
        self._silence_s = silence_s
        self._signs = signs
        self._on_silence = on_silence
        self._last = signs()
        self._timer = self._wait()

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def look(self) -> None:
        """Look, and say so if all is as it was the last time."""
        signs, before = self._signs(), self._last
        self._last = signs
        if signs == before:
            self._on_silence()

    def _wait(self) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(self._silence_s, self._go_off)

    def _go_off(self) -> None:
        self._timer = self._wait()
        self.look()
