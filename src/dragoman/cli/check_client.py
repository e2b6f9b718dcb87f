"""`dragoman check client`: a client that we start, or one that a person points at us."""

import argparse
import asyncio
import shlex
import signal
import sys
import tempfile
from pathlib import Path

from dragoman.check.adversary import ClientOptions, check_client, listen
from dragoman.check.results import CheckReport
from dragoman.errors import DragomanError


class NoPlace(DragomanError):
    """Nobody can be waited for at this port."""


async def check(command: list[str], options: argparse.Namespace) -> CheckReport:
    """Judge a client. Raises StartError, NeverStarted, NoPlace."""
    if options.listen is None:
        return await check_client(ClientOptions(command=tuple(command), timeout_s=options.timeout))
    with tempfile.TemporaryDirectory(prefix="dragoman-check-") as directory:
        try:
            return await _wait(Path(directory), options.listen)
        except OSError as error:
            raise NoPlace(f"cannot listen at port {options.listen}: {error.strerror}; name another port") from None


async def _wait(directory: Path, port: int) -> CheckReport:
    """Wait for clients until Ctrl-C, and judge what they said."""
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
    async with listen(directory, port) as listening:
        print(
            f"Point the client at this agent: {shlex.join(listening.command)}\n"
            f"or at this address:            {listening.url}\n"
            "Send it a few prompts, and answer what it asks. Ctrl-C ends it, and the report follows.",
            file=sys.stderr,
            flush=True,
        )
        await ended.wait()
        return listening.report()
