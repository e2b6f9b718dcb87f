"""Runs an agent as a process. stdin and stdout are the connection, and stderr is the log."""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable

from dragoman.event_loop import run
from dragoman.wire import StdioTransport, Transport, claim_stdio

CANCEL_TIMEOUT_S = 1.0
"""How long remaining tasks may take to end after they are cancelled."""


def run_on_stdio(name: str, serve: Callable[[Transport], Awaitable[None]]) -> None:
    """Serve until the client closes stdin. If a signal ends the process, exit with 128 plus its number."""
    if not logging.getLogger().handlers:
        level = os.environ.get("DRAGOMAN_LOG", "warning").upper()
        known = level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
        logging.basicConfig(
            stream=sys.stderr, format=f"{name}: %(levelname)s: %(message)s", level=level if known else "WARNING"
        )
    read_fd, write_fd = claim_stdio()

    async def main() -> None:
        try:
            await serve(StdioTransport(read_fd, write_fd))
        finally:
            await _end_tasks()

    run(main())


async def _end_tasks() -> None:
    """Cancel all remaining tasks. Exit if one ignores this, because the event loop would wait for it forever."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left and (await asyncio.wait(left, timeout=CANCEL_TIMEOUT_S))[1]:
        logging.getLogger("dragoman.agent").warning(
            "a function ignored its cancellation; the process exits without waiting for it"
        )
        sys.stderr.flush()
        os._exit(0)
