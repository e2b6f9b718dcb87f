"""Servers as commands that print their URL in the first line."""

import asyncio
import json
import os
import subprocess
from contextlib import asynccontextmanager, contextmanager

from dragoman.proc import EVERYTHING, Supervisor


@asynccontextmanager
async def served(command, **options):
    """Start a server and yield its description."""
    async with asyncio.timeout(50), Supervisor() as supervisor:
        child = await supervisor.start(command, inherit=EVERYTHING, **options)
        read_fd, write_fd = child.claim_stdio()
        with open(read_fd, "rb") as output, open(write_fd, "wb"):
            yield json.loads(await asyncio.to_thread(output.readline))
            await child.stop(grace_s=0)


@contextmanager
def standing(command, home):
    """Start a server that several tests share, with its own home directory."""
    environment = {**os.environ, "DRAGOMAN_HOME": str(home)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as server:
        try:
            yield json.loads(server.stdout.readline())
        finally:
            server.terminate()
