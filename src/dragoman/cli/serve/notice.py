"""The messages of `dragoman serve` at its terminal, and its Enter key."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dragoman.bridge import BridgeSettings
from dragoman.bridge.guard import AccessUnavailableError, Guard, Token
from dragoman.bridge.guard.credentials import CODE_LIFE_S
from dragoman.text import clean_text

_MINUTES = int(CODE_LIFE_S // 60)


class _Report(msgspec.Struct):
    url: str
    acp: str
    token: str


class ServeNotice:
    """Prints links and addresses: as text, or as one JSON line on stdout with the rest on stderr."""

    def __init__(self, base_url: str, guard: Guard, settings: BridgeSettings, *, json: bool) -> None:
        self._base_url = base_url
        self._guard = guard
        self._settings = settings
        self._json = json

    async def begin(self, token: Token) -> None:
        """Print the addresses. Only a program that asked for JSON receives the token itself.

        Raises AccessUnavailableError.
        """
        link = await self.new_link()
        if self._json:
            report = _Report(link, self._acp, token.reveal())
            print(msgspec.json.encode(report).decode(), flush=True)
        agents = self._settings.agents
        names = ", ".join(agent.name for agent in agents)
        self._say(f"Serving {names}; new sessions start in {self._settings.cwd}\n")
        if not self._json:
            self._say(f"  open in a browser   {link}")
        self._say(f"  ACP clients         {self._acp}")
        for agent in agents[1:]:
            self._say(f"                      {self._acp}/{agent.name}")
        self._say(f"  token, for clients  in {self._settings.home / 'bridge' / 'token'}\n")
        self._say(f"The {'url' if self._json else 'link'} signs in one browser within {_MINUTES} minutes. {_hints()}")

    async def fresh_link(self) -> None:
        """Print another link, or the reason why none can be created."""
        try:
            text = f"open in a browser   {await self.new_link()}"
        except AccessUnavailableError as error:
            text = f"no sign-in link can be created now: {error}"
        with suppress(OSError):  # stdout may be closed
            self._say(f"  {text}")

    def stopping(self) -> None:
        """Print that the bridge is stopping, and how to stop it at once."""
        with suppress(OSError):  # as above
            print("Stopping; press Ctrl-C again to stop at once", file=sys.stderr, flush=True)

    async def new_link(self) -> str:
        """Return a link that signs in one browser. Raises AccessUnavailableError."""
        return f"{self._base_url}login?code={await self._guard.new_link_code()}"

    @property
    def _acp(self) -> str:
        return f"{self._base_url}acp"

    def _say(self, text: str) -> None:
        print(clean_text(text), file=sys.stderr if self._json else sys.stdout, flush=True)


def _hints() -> str:
    enter = "Press Enter for a new one, " if sys.stdin is not None and sys.stdin.isatty() else ""
    return f"{enter}Ctrl-C stops." if enter else "Ctrl-C stops."


PAUSE_S = 1.0
"""How often to check whether we are in the foreground again. Reading in the background would stop the process."""

_CHUNK = 1024


class EnterKey:
    """Calls `pressed` for each line that the user enters. Does nothing if stdin is not a terminal."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._pressed = pressed
        self._loop = asyncio.get_running_loop()
        self._is_ignored = False

    def watch(self) -> None:
        """Start watching."""
        try:
            if sys.stdin.isatty():
                self._loop.add_reader(sys.stdin.fileno(), self._read)
        except (AttributeError, ValueError):  # closed
            return

    def ignore(self) -> None:
        """Stop calling `pressed`."""
        self._is_ignored = True

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
        elif b"\n" in data and not self._is_ignored:
            self._pressed()
