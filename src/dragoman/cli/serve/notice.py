"""The messages of `dragoman serve` at its terminal, and the Enter key there."""

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dragoman.bridge import Settings
from dragoman.bridge.guard import AccessUnavailable, Guard, Token
from dragoman.bridge.guard.credentials import CODE_LIFE_S
from dragoman.text import clean_text

_MINUTES = int(CODE_LIFE_S // 60)


class _Report(msgspec.Struct):
    url: str
    acp: str
    token: str


class ServeNotice:
    """Prints links and addresses: for people, or one line for a program and the rest on stderr."""

    def __init__(self, base_url: str, guard: Guard, settings: Settings, *, json: bool) -> None:
        self._base_url = base_url
        self._guard = guard
        self._settings = settings
        self._json = json

    async def begin(self, token: Token) -> None:
        """Say where everything is; the token itself only to a program that asked for it. Raises AccessUnavailable."""
        link = await self.new_link()
        if self._json:
            report = _Report(link, self._acp, token.reveal())
            print(msgspec.json.encode(report).decode(), flush=True)
        agents = self._settings.agents
        names = ", ".join(agent.name for agent in agents)
        self._say(f"Serving {names}; new sessions begin in {self._settings.cwd}\n")
        if not self._json:
            self._say(f"  open in a browser   {link}")
        self._say(f"  ACP clients         {self._acp}")
        for agent in agents[1:]:
            self._say(f"                      {self._acp}/{agent.name}")
        self._say(f"  token, for clients  in {self._settings.home / 'bridge' / 'token'}\n")
        self._say(f"The {'url' if self._json else 'link'} lets one browser in, within {_MINUTES} minutes. {_hints()}")

    async def fresh_link(self) -> None:
        """Print another link, or why there can be none now."""
        try:
            words = f"open in a browser   {await self.new_link()}"
        except AccessUnavailable as error:
            words = f"no link can be made now: {error}"
        with suppress(OSError):  # nobody reads it
            self._say(f"  {words}")

    def stopping(self) -> None:
        """Say that it ends, and how to hurry it."""
        with suppress(OSError):  # as above
            print("Stopping; Ctrl-C again ends it at once", file=sys.stderr, flush=True)

    async def new_link(self) -> str:
        """Return a link that lets one browser in; raises AccessUnavailable."""
        return f"{self._base_url}login?code={await self._guard.new_link_code()}"

    @property
    def _acp(self) -> str:
        return f"{self._base_url}acp"

    def _say(self, text: str) -> None:
        print(clean_text(text), file=sys.stderr if self._json else sys.stdout, flush=True)


def _hints() -> str:
    enter = "Enter prints a fresh one, " if sys.stdin is not None and sys.stdin.isatty() else ""
    return f"{enter}Ctrl-C stops." if enter else "Ctrl-C stops."


PAUSE_S = 1.0
"""How often to look whether we are in the foreground again; reading before that would stop the whole process."""

_CHUNK = 1024


class EnterKey:
    """Calls back for each line that a person enters; does nothing when stdin is no terminal."""

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._pressed = pressed
        self._loop = asyncio.get_running_loop()
        self._is_ignored = False

    def watch(self) -> None:
        """Begin to watch."""
        try:
            if sys.stdin.isatty():
                self._loop.add_reader(sys.stdin.fileno(), self._read)
        except (AttributeError, ValueError):  # closed
            return

    def ignore(self) -> None:
        """Call back no more."""
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
