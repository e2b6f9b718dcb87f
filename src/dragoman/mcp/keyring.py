"""The keyring of the operating system, where the extra `keyring` is installed and a keyring answers.

A keyring may ask a person to unlock it, and may hang: each call has a thread of its own that does not keep the process
from ending, and a bounded time. After a failure the process asks it no more, and a warning says so once.
"""

import asyncio
import importlib
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from dragoman.errors import ServerFailure

SERVICE = "dragoman MCP"
"""The name under which the keyring shows the entries."""

TIMEOUT_S = 20.0
"""For a person to unlock the keyring; one that takes longer counts as broken."""

_log = logging.getLogger("dragoman.mcp")


class KeyringUnusable(ServerFailure):
    """The keyring refused, hangs, or is not there; the message has no entry of it."""


class SystemKeyring:
    """Keeps texts by name; all methods raise KeyringUnusable."""

    def __init__(self) -> None:
        self._problem: str | None = None

    async def get(self, name: str) -> str | None:
        """Return the text of this name; None when there is none."""
        return await self._run(lambda backend: backend.get_password(SERVICE, name))

    async def set(self, name: str, text: str) -> None:
        """Keep a text."""
        await self._run(lambda backend: backend.set_password(SERVICE, name, text))

    async def delete(self, name: str) -> None:
        """Forget a text, if it is there."""

        def delete(backend: Any) -> None:
            if backend.get_password(SERVICE, name) is not None:
                backend.delete_password(SERVICE, name)

        await self._run(delete)

    async def _run(self, work: Callable[[Any], Any]) -> Any:
        if self._problem is not None:
            raise KeyringUnusable(self._problem)
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, problem: str | None) -> None:
            if not done.done():
                done.set_result((result, problem))

        def run() -> None:
            result, problem = _attempt(work)
            with suppress(RuntimeError):  # the loop has ended: nobody waits
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
                _log.warning("%s; tokens are kept in files that only you can read", problem)
            raise KeyringUnusable(problem)
        return result


ABSENT: Final = "there is no keyring of the operating system here"

KEYRING = SystemKeyring()
"""The keyring of this process."""


def _attempt(work: Callable[[Any], Any]) -> tuple[Any, str | None]:
    """Return the result, or the problem in words; an error of the keyring may hold an entry, so its text is dropped."""
    try:
        library = importlib.import_module("keyring")
        backend = library.get_keyring()
        if backend.priority < 1:  # as the library itself judges a backend that is no keyring of the system
            return None, ABSENT
        return work(backend), None
    except ImportError:
        return None, ABSENT
    except Exception as error:  # noqa: BLE001 -- the edge to a foreign library, and the top of a thread
        return None, f"the keyring of the operating system failed ({type(error).__name__})"
