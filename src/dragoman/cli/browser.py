"""Opens pages in the browser of the user at the terminal."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress
from subprocess import DEVNULL


def should_open(asked: bool | None, environment: Mapping[str, str], *, is_terminal: bool) -> bool:
    """Return whether to open a browser. By default only for a user at a terminal with a display."""
    if asked is not None:
        return asked
    return is_terminal and not environment.get("CI") and _has_display(environment)


def _has_display(environment: Mapping[str, str]) -> bool:
    if sys.platform == "darwin":
        return not environment.get("SSH_CONNECTION")
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def is_at_terminal() -> bool:
    """Return whether stdin and stdout are a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout is not None and sys.stdout.isatty()


async def open_browser(url: str) -> None:
    """Open a URL in the browser.

    Failures are ignored, because the link is printed as well. The `webbrowser` module runs in its own process: it may
    wait for the browser, and browsers write to the terminal.
    """
    command = (sys.executable, "-I", "-m", "webbrowser", url)
    with suppress(OSError):
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        )
        await process.wait()
