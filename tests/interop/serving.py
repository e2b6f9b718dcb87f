"""Servers as commands that say in their first line where they are."""

import asyncio
import json
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager

from dragoman.proc import EVERYTHING, Supervisor


@asynccontextmanager
async def served(command, **options):
    """Start one and yield its own description."""
    async with asyncio.timeout(50), Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING, **options)
        read_fd, write_fd = child.take_stdio()
        with open(read_fd, "rb") as output, open(write_fd, "wb"):
            yield json.loads(await asyncio.to_thread(output.readline))
            await child.stop(grace_s=0)


@contextmanager
def standing(command, home):
    """Start one that several tests share, with a home of its own."""
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()
