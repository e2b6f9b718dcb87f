"""A PostgreSQL server for this run, and nodes: `dragoman serve` with its journals in the database or in files.

The database is on this disk, with fsync on. Agents, nodes, clients and the database share the cores.
"""

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bench.bridge import AGENT, CLIENT
from bench.client_run import run_reporter
from bench.commands import STDERR
from bench.measure import MissingError

LEASE_S = 15.0
STOP_TIMEOUT_S = 30.0

_SETTINGS = ("fsync=on", "full_page_writes=on", "shared_buffers=128MB", "autovacuum=on")


@cache
def server() -> Any:
    """Start a PostgreSQL server for this run. Raises MissingError."""
    from tests.store.postgres_server import PostgresServer, find_programs

    programs = find_programs()
    if programs is None:
        raise MissingError("PostgreSQL is not here: scripts/postgresql")
    started = PostgresServer(programs, *_SETTINGS)
    started.start()
    atexit.register(started.remove)
    return started


def new_database() -> str:
    """Create a database with the tables, and return its address."""
    address = server().new_database()
    subprocess.run(dragoman("store", "init", "--store", address), check=True, stdout=subprocess.DEVNULL)
    return address


def dragoman(*arguments: str) -> tuple[str, ...]:
    """Return a dragoman command with psycopg, which the development environment has."""
    return (str(Path(sys.executable).parent / "dragoman"), *arguments)


class RunningNode(msgspec.Struct, frozen=True):
    """A running bridge."""

    process: subprocess.Popen[bytes]
    url: str
    token: str

    def run_client(self, *options: str) -> dict[str, Any]:
        """Run a client with the bridge, and return the client's report."""
        return run_reporter((*CLIENT, self.url, f"--token={self.token}", *options))  # the token may begin with a dash


@contextmanager
def node(
    store: str | None, *options: str, agent: Sequence[str] = AGENT, lease_s: float = LEASE_S
) -> Generator[RunningNode]:
    """Run a bridge with its journals in a database or in files. An `agent` of () means our own."""
    where = () if store is None else ("--store", store)
    command = dragoman("serve", "--format", "json", "--port", "0", "--no-open", *where, *options)
    with tempfile.TemporaryDirectory() as home:
        environment = {"DRAGOMAN_HOME": home, "DRAGOMAN_STORE_LEASE": str(lease_s)}
        with subprocess.Popen(
            (*command, *(("--", *agent) if agent else ())),
            stdout=subprocess.PIPE,
            stderr=STDERR,
            env=os.environ | environment,
        ) as process:
            try:
                assert process.stdout is not None
                said = json.loads(process.stdout.readline())
                yield RunningNode(process, said["acp"].replace("http://", "ws://"), said["token"])
            finally:
                process.send_signal(signal.SIGCONT)
                process.terminate()
                process.wait(STOP_TIMEOUT_S)


def cpu_s(nodes: Sequence[RunningNode]) -> float:
    """Return the CPU time of nodes, without their agents, and of the database."""
    return sum(_own_cpu_s(each.process.pid) for each in nodes) + _family_cpu_s(server().pid)


def _own_cpu_s(pid: int) -> float:
    return sum(_cpu_times_s(pid)[:2])


def _family_cpu_s(pid: int) -> float:
    """Return the CPU time of a process, of its children, and of its ended children."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        # After its children, because it counts a child that ends meanwhile, such as a connection of the database.
        return sum(_family_cpu_s(int(child)) for child in children) + sum(_cpu_times_s(pid))
    except (FileNotFoundError, ProcessLookupError):
        return 0.0


def _cpu_times_s(pid: int) -> list[float]:
    """Return the user and kernel time of a process, and both for its ended children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return [int(ticks) / os.sysconf("SC_CLK_TCK") for ticks in fields[11:15]]
