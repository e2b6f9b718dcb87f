"""Sessions in PostgreSQL against sessions in files, in the same run and with the same programs.

The database is one of this run, on this disk, with fsync on: the cost of a commit there is given beside. Agents, nodes,
clients and the database share the cores. A node is `dragoman serve`.
"""

import atexit
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from bench import listing
from bench.bridge import AGENT, CLIENT
from bench.client_run import run_reporter
from bench.measure import Measure, Missing, Target
from bench.raw_agent import RawAgent
from bench.stream import CHUNKS, OPTIONS, read_rate

FILES = "files"
DATABASE = "PostgreSQL"
OTHER_NODE = "PostgreSQL, viewers on another node"
TICKS = ("--ticks", "200")
VIEWERS = 10
FAN_OUT_CHUNKS = 5_000
COMMITS = 200
LEASE_S = 15.0
FAILOVER_LEASE_S = 3.0
"""Short, so that a round does not take long; on a busy machine nodes would lose it while they stream."""

STOP_TIMEOUT_S = 30.0
FAILOVER_TIMEOUT_S = 60.0
_BLOCK = b"x" * 400


class RunningNode(msgspec.Struct, frozen=True):
    """A started bridge."""

    process: subprocess.Popen[bytes]
    url: str
    token: str

    @property
    def where(self) -> tuple[str, ...]:
        """The arguments of a client."""
        return self.url, f"--token={self.token}"  # which may begin with a dash


@cache
def _server() -> Any:
    """Start a PostgreSQL for this run; raises Missing."""
    from tests.store.postgres_server import PostgresServer, find_programs

    programs = find_programs()
    if programs is None:
        raise Missing("PostgreSQL is not here: scripts/postgresql")
    server = PostgresServer(programs, "fsync=on", "full_page_writes=on", "shared_buffers=128MB", "autovacuum=on")
    server.start()
    atexit.register(server.remove)
    return server


def new_database() -> str:
    """Make a database with the tables, and return its address."""
    address = _server().new_database()
    subprocess.run([*_dragoman("store", "init", "--store", address)], check=True, stdout=subprocess.DEVNULL)
    return address


def _dragoman(*arguments: str) -> tuple[str, ...]:
    """Return a command of dragoman with psycopg, which the developers' environment has."""
    return (str(Path(sys.executable).parent / "dragoman"), *arguments)


@contextmanager
def node(
    store: str | None, *options: str, agent: Sequence[str] = AGENT, lease_s: float = LEASE_S
) -> Generator[RunningNode]:
    """Run a bridge with its journals in files or in a database; `agent` is () for our own."""
    where = () if store is None else ("--store", store)
    command = _dragoman("serve", "--format", "json", "--port", "0", "--no-open", *where, *options)
    with tempfile.TemporaryDirectory() as home:
        environment = {"DRAGOMAN_HOME": home, "DRAGOMAN_STORE_LEASE": str(lease_s)}
        with subprocess.Popen(
            (*command, *(("--", *agent) if agent else ())),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
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


def _client(running: RunningNode, *options: str) -> dict[str, Any]:
    return run_reporter((*CLIENT, *running.where, *options))


def stream(store: Callable[[], str | None]) -> float:
    """Stream through one node, and return thousands of messages a second."""
    with node(store()) as running:
        return read_rate(_client(running, *OPTIONS))


def no_store() -> str | None:
    """Choose files."""


def fan_out(store: Callable[[], str | None], *, is_remote: bool) -> float:
    """Show one session to viewers, on its own node or on another; thousands of messages a second, over all viewers."""
    address = store()
    with ExitStack() as stack:
        owner = stack.enter_context(node(address))
        options = ["--viewers", str(VIEWERS), "--chunks", str(FAN_OUT_CHUNKS)]
        if is_remote:
            other = stack.enter_context(node(address))
            options += ["--viewers-url", other.url, f"--viewers-token={other.token}"]
        report = _client(owner, *options)
    expected = (VIEWERS + 1) * FAN_OUT_CHUNKS
    if report["chunks_received"] != expected:
        raise RuntimeError(f"{report['chunks_received']} of {expected} came")
    return report["chunks_per_s"] / 1000


def update_ms(store: Callable[[], str | None]) -> float:
    """Return the time of an update from the agent to a viewer, p50."""
    with node(store()) as running:
        return 1000 * _client(running, *TICKS)["update_p50_s"]


def commit_ms() -> float:
    """Return the time of a commit of one small row on this disk, p50."""
    import psycopg

    with psycopg.connect(_server().new_database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE block (number int PRIMARY KEY, data bytea)")
        taken: list[float] = []
        for number in range(COMMITS):
            started = time.perf_counter()
            connection.execute("INSERT INTO block VALUES (%s, %s)", (number, _BLOCK))
            taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def added_commits() -> float:
    """Return what the database adds to an update, in commits."""
    return (update_ms(new_database) - update_ms(no_store)) / commit_ms()


def many_nodes(count: int) -> tuple[float, float]:
    """Stream one session on each node; thousands of messages a second, and processor time of nodes and database."""
    address = new_database()
    with ExitStack() as stack:
        # Sessions of this agent have one id, so that each node has an agent of its own name.
        nodes = [stack.enter_context(node(address, "--name", f"node{number}")) for number in range(count)]
        pids = [_server().pid, *(each.process.pid for each in nodes)]
        before_s, started = sum(map(_cpu_s, pids)), time.perf_counter()
        with ThreadPoolExecutor(count) as threads:
            running = [threads.submit(_client, each, *OPTIONS) for each in nodes]
            reports = [each.result() for each in running]
        seconds, cpu_s = time.perf_counter() - started, sum(map(_cpu_s, pids)) - before_s
    for report in reports:
        read_rate(report)
    return count * CHUNKS / seconds / 1000, 1e6 * cpu_s / (count * CHUNKS)


def _cpu_s(pid: int) -> float:
    """Return the processor time of a process, of those that it started, and of those of them that have ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own_s = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own_s + sum(map(_cpu_s, map(int, children)))


def failover_leases() -> float:
    """Kill the node that owns a session, and return the time until another takes its next prompt, over the lease."""
    address = new_database()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        script = Path(folder) / "script.yaml"
        script.write_text("- - text: word\n" * 50)
        options = ("--model", f"script:{script}")
        owner, other = (
            stack.enter_context(node(address, *options, agent=(), lease_s=FAILOVER_LEASE_S)) for _ in range(2)
        )
        session_id = _say(owner, None)
        started = time.perf_counter()
        owner.process.kill()
        while True:
            try:
                _say(other, session_id)
            except RuntimeError:
                if time.perf_counter() - started > FAILOVER_TIMEOUT_S:
                    raise
                time.sleep(0.05)
            else:
                return (time.perf_counter() - started) / FAILOVER_LEASE_S


def _say(running: RunningNode, session_id: str | None) -> str:
    """Prompt a session, or a new one, and return its id."""
    from bench.peers.ws_client import Viewer

    viewer = Viewer(running.url, running.token)
    viewer.initialize()
    place: dict[str, Any] = {"cwd": "/", "mcpServers": []}
    if session_id is None:
        found: str = viewer.call("session/new", place)["sessionId"]
    else:
        found = session_id
        viewer.call("session/load", {"sessionId": found, **place})
    viewer.call("session/prompt", {"sessionId": found, "prompt": [{"type": "text", "text": "go"}]})
    viewer.socket.close()
    return found


_COPIES = """
WITH made AS (
    INSERT INTO dragoman_session (scope, id, header, cwd, title, messages, prompted, updated)
    SELECT s.scope, n.id, convert_to(replace(convert_from(s.header, 'UTF8'), s.id, n.id), 'UTF8'),
        s.cwd || n.number / 100, s.title, s.messages, s.prompted, s.updated - 60000 * n.number
    FROM dragoman_session s, (
        SELECT number, gen_random_uuid()::text AS id FROM generate_series(1, %(copies)s) AS number) AS n
    RETURNING key),
ended AS (
    INSERT INTO dragoman_end (session, last, checksum, bytes)
    SELECT made.key, e.last, e.checksum, e.bytes FROM made, dragoman_end e)
INSERT INTO dragoman_block (session, first, last, data)
SELECT made.key, b.first, b.last, b.data FROM made, dragoman_block b
"""


@cache
def _filled(sessions: int) -> str:
    """Make a database with that many sessions: one by the store, the others as copies of it, a hundred to a project."""
    import psycopg

    address = new_database()
    home = listing.make_home(1)
    command = _dragoman("store", "move", "--store", address)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=os.environ | {"DRAGOMAN_HOME": str(home)})
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_COPIES, {"copies": sessions - 1})
        connection.execute("ANALYZE")
    return address


def list_ms(sessions: int) -> float:
    """Return the time of the first page of `session/list` from a database, p50."""
    with RawAgent(_dragoman("agent", "--store", _filled(sessions))) as agent:
        agent.initialize()
        for _ in range(listing.WARM_UP_REQUESTS):
            listing.time_list_ms(agent)
        return statistics.median(listing.time_list_ms(agent) for _ in range(listing.REQUESTS))


_NODES = {f"{count} {'node' if count == 1 else 'nodes'}": count for count in (1, 2, 4)}

MEASURES = (
    Measure(
        part="store",
        title="a commit on this disk, p50",
        unit="ms",
        contenders={DATABASE: commit_ms},
        targets=(),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="store",
        title=f"{CHUNKS:,} chunks through one node",
        unit="k msg/s",
        contenders={DATABASE: lambda: stream(new_database), FILES: lambda: stream(no_store)},
        targets=(Target(DATABASE, FILES, "at least", 0.5),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="store",
        title="an update from the agent to a viewer, p50",
        unit="ms",
        contenders={DATABASE: lambda: update_ms(new_database), FILES: lambda: update_ms(no_store)},
        targets=(),
        ratios=((DATABASE, FILES),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="store",
        title="latency that the database adds to an update, p50",
        unit="commits",
        contenders={DATABASE: added_commits},
        targets=(Target(DATABASE, None, "at most", 2.0),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="store",
        title=f"one session to {VIEWERS} viewers, {FAN_OUT_CHUNKS:,} chunks",
        unit="k msg/s",
        contenders={
            OTHER_NODE: lambda: fan_out(new_database, is_remote=True),
            DATABASE: lambda: fan_out(new_database, is_remote=False),
            FILES: lambda: fan_out(no_store, is_remote=False),
        },
        targets=(Target(OTHER_NODE, FILES, "at least", 0.3),),
        rounds=5,
        quick_rounds=2,
    ),
    Measure(
        part="store",
        title=f"{CHUNKS:,} chunks on each of several nodes",
        unit="k msg/s",
        contenders={name: lambda count=count: many_nodes(count)[0] for name, count in _NODES.items()},
        targets=(),
        ratios=(("2 nodes", "1 node"), ("4 nodes", "1 node")),
        rounds=3,
        quick_rounds=1,
    ),
    Measure(
        part="store",
        title="processor time of nodes and database for a message",
        unit="µs",
        contenders={name: lambda count=count: many_nodes(count)[1] for name, count in _NODES.items()},
        targets=(),
        ratios=(("2 nodes", "1 node"), ("4 nodes", "1 node")),
        rounds=3,
        quick_rounds=1,
    ),
    Measure(
        part="store",
        title="from the death of a node to the next turn elsewhere",
        unit="leases",
        contenders={DATABASE: failover_leases},
        targets=(),
        rounds=3,
        quick_rounds=1,
    ),
    Measure(
        part="store",
        title="first page of session/list from a database",
        unit="ms",
        contenders={f"over {sessions:,}": lambda sessions=sessions: list_ms(sessions) for sessions in (10_000, 100)},
        targets=(Target("over 10,000", "over 100", "at most", 2.0),),
        rounds=5,
        quick_rounds=2,
    ),
)
