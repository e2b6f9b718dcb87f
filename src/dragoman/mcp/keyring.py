"""The keyring of the operating system, if the extra `keyring` is installed and a keyring is available.

A keyring may ask the user to unlock it, and may hang. Each call therefore runs in a daemon thread with a timeout. After
a failure the process does not use the keyring again, and logs one warning.
"""

import asyncio
import importlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from dragoman.errors import McpServerError

SERVICE = "dragoman MCP"
"""The name under which the keyring lists our entries."""

TIMEOUT_S = 20.0
"""Time for the user to unlock the keyring. After that it counts as broken."""

_log = logging.getLogger("dragoman.mcp")


class KeyringUnavailableError(McpServerError):
    """The keyring refused, did not answer or does not exist. The message contains no entry."""


class SystemKeyring:
    """Stores texts by name. All methods raise KeyringUnavailableError."""

    def __init__(self) -> None:
        self._problem: str | None = None

    async def get(self, name: str) -> str | None:
        """Return the text stored under a name, or None."""
        return await self._run(lambda backend: backend.get_password(SERVICE, name))

    async def set(self, name: str, text: str) -> None:
        """Store a text."""
        await self._run(lambda backend: backend.set_password(SERVICE, name, text))

    async def delete(self, name: str) -> None:
        """Delete a text if it exists."""

        def delete(backend: Any) -> None:
            if backend.get_password(SERVICE, name) is not None:
                backend.delete_password(SERVICE, name)

        await self._run(delete)

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        if self._problem is not None:
            raise KeyringUnavailableError(self._problem)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, problem: str | None) -> None:
            if not done.done():
                done.set_result((result, problem))

        def run() -> None:
            result, problem = _attempt(work)
            with suppress(RuntimeError):  # the loop has ended, so nothing waits
                loop.call_soon_threadsafe(settle, result, problem)

        threading.Thread(target=run, name="dragoman-keyring", daemon=True).start()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                result, problem = await done
        except TimeoutError:
            result, problem = None, f"the keyring of the operating system did not answer within {TIMEOUT_S:.0f} s"
        if problem is not None:
            self._problem = problem
            if problem is not ABSENT:
                _log.warning("%s; tokens are stored in files that only you can read", problem)
            raise KeyringUnavailableError(problem)
        return result


ABSENT: Final = "the operating system has no keyring here"

KEYRING = SystemKeyring()
"""The keyring of this process."""


def _attempt(work: Callable[[Any], Any]) -> tuple[Any, str | None]:
    """Return the result, or a description of the problem.

    The text of a keyring's error is dropped, because it may contain an entry.
    """
    try:
        library = importlib.import_module("keyring")
        backend = library.get_keyring()
        if backend.priority < 1:  # the library uses this test for a backend that is not a system keyring
            return None, ABSENT
        return work(backend), None
    except ImportError:
        return None, ABSENT
    except Exception as error:  # noqa: BLE001 -- the edge to a foreign library, and the top of a thread
        return None, f"the keyring of the operating system failed ({type(error).__name__})"
