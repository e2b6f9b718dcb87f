"""Several waits, of which the first decides."""

import asyncio
from collections.abc import Coroutine
from typing import Any


async def race(*runners: Coroutine[Any, Any, object]) -> list[bool]:
    """Run all until the first ends, cancel the others, and tell which ended; raises what one of those raised."""
    tasks = [asyncio.create_task(runner) for runner in runners]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [task.done() for task in tasks]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task, has_ended in zip(tasks, ended, strict=True):
        if has_ended:
            task.result()
    return ended
