"""An agent as a process: stdin and stdout are the connection, stderr has the log."""

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable

from dragoman.event_loop import Stopped, run
from dragoman.wire import StdioTransport, Transport, take_stdio

STUBBORN_S = 1.0
"""How long tasks that were left behind may take to end once they are cancelled."""


def run_on_stdio(name: str, serve: Callable[[Transport], Awaitable[None]]) -> None:
    """Serve until the client closes stdin; exits with 128 plus the signal when one ends the process."""
    if not logging.getLogger().handlers:
        level = os.environ.get("DRAGOMAN_LOG", "warning").upper()
        known = level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
        logging.basicConfig(
            stream=sys.stderr, format=f"{name}: %(levelname)s: %(message)s", level=level if known else "WARNING"
        )
    read_fd, write_fd = take_stdio()

    async def main() -> None:
        try:
            await serve(StdioTransport(read_fd, write_fd))
        finally:
            await _end_tasks()

    try:
        run(main())
    except Stopped as stopped:
        sys.exit(128 + stopped.signal_number)


async def _end_tasks() -> None:
    """End the process if a task ignores its cancellation: the event loop would wait for it for ever."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left and (await asyncio.wait(left, timeout=STUBBORN_S))[1]:
        logging.getLogger("dragoman.agent").warning("a function ignores its cancellation; the process ends without it")
        sys.stderr.flush()
        os._exit(0)
