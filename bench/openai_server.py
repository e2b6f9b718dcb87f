"""Starts the loopback provider while a measure uses it."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

from bench import commands

STOP_TIMEOUT_S = 10


@contextmanager
def openai_server() -> Generator[str]:
    """Start the provider in a separate process and yield its address."""
    command = commands.python("openai_server.py")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(STOP_TIMEOUT_S)
