"""Bounded waits for a condition that no event announces, such as the end of another process."""

import asyncio
import time
from collections.abc import Callable

PATIENCE_S = 30.0
PAUSE_S = 0.002


def wait_until(condition: Callable[[], object]) -> None:
    """Block until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {PATIENCE_S:g} s"
        time.sleep(PAUSE_S)


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds, while the event loop runs."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(PAUSE_S)
