"""MCP servers to measure, as a client names them, and as plain processes with pipes."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from time import perf_counter
from typing import Any

from bench import commands
from bench.commands import Command
from bench.measure import MissingError
from bench.raw_agent import READ_BYTES

SCRIPTED = commands.ROOT / "tests" / "mcp" / "servers" / "scripted.py"
TIME_SERVER = Path(sys.executable).parent / "mcp-server-time"

INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
"""The variables that dragoman passes to a server, so that a bare start reads no more."""

GREETING = b"".join(
    json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    for message in (
        {
            "id": 0,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "bench", "version": "0"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
    )
)
ANSWERS = 2


def scripted(**options: Any) -> Command:
    """Return the command of a scripted server with few imports. Its options are in its `options.py`."""
    return (sys.executable, "-I", "-S", str(SCRIPTED), json.dumps(options))


def waiting(seconds: float) -> Command:
    """Return the command of a very cheap server that answers `initialize` late."""
    return ("/bin/sh", str(commands.PEERS / "waiting_server.sh"), f"{seconds:g}")


def hung() -> Command:
    """Return the command of a very cheap server that never answers."""
    return ("/bin/sleep", "300")


def clock() -> Command:
    """Return the command of a real server. Raises MissingError."""
    if not TIME_SERVER.exists():
        raise MissingError("mcp-server-time is not installed: make .venv/.dev")
    return (str(TIME_SERVER), "--local-timezone", "Europe/Zurich")


def name_servers(command: Command, count: int = 1) -> list[dict[str, Any]]:
    """Return `count` servers with one command, as in `session/new`."""
    return [
        {"name": f"server-{number}", "command": command[0], "args": list(command[1:]), "env": []}
        for number in range(count)
    ]


def time_bare_s(command: Command, count: int) -> float:
    """Start processes concurrently, initialize them, and return when all of them have listed their tools.

    Each has its own process session, as in dragoman. Linux may share the CPU by session. Sixteen processes in one
    session would then get as much as one, and on a busy machine only this would be measured.
    """
    started = perf_counter()
    with bare_processes(command, count) as processes:
        wait_for_answers(processes)
        return perf_counter() - started


@contextmanager
def bare_processes(command: Command, count: int) -> Generator[list["subprocess.Popen[bytes]"]]:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ}
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(count):
            process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=commands.STDERR,
                env=environment,
                start_new_session=True,
            )
            processes.append(process)
            assert process.stdin is not None
            os.write(process.stdin.fileno(), GREETING)
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.communicate()


def wait_for_answers(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Read until every process has answered the greeting in whole lines."""
    with DefaultSelector() as selector:
        lines: dict[int, int] = {}
        for process in processes:
            assert process.stdout is not None
            selector.register(process.stdout, EVENT_READ)
            lines[process.stdout.fileno()] = 0
        while selector.get_map():
            for key, _ in selector.select():
                block = os.read(key.fd, READ_BYTES)
                if not block:
                    raise RuntimeError("a server ended before it listed its tools")
                lines[key.fd] += block.count(b"\n")
                if lines[key.fd] >= ANSWERS:
                    selector.unregister(key.fileobj)
