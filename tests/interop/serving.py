"""Servers as commands that say in their first line where they are."""

import asyncio
import json
from contextlib import asynccontextmanager

from dragoman.proc import EVERYTHING, Supervisor


@asynccontextmanager
async def served(command, **options):
    """Start one and give what it says of itself."""
    async with asyncio.timeout(50), Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING, **options)
        read_fd, write_fd = child.take_stdio()
        with open(read_fd, "rb") as output, open(write_fd, "wb"):
            yield json.loads(await asyncio.to_thread(output.readline))
            await child.stop(grace_s=0)
