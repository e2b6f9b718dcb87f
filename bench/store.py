"""Sessions in PostgreSQL compared with sessions in files, in the same run and with the same programs."""

import statistics
import subprocess
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import cache
from os import environ
from pathlib import Path
from typing import Any

from bench import listing
from bench.measure import Measure, Target
from bench.peers.dragoman_agent import TICK_S
from bench.peers.ws_client import Viewer
from bench.raw_agent import RawAgent
from bench.size import IS_SMOKE, size
from bench.store_node import RunningNode, cpu_s, dragoman, new_database, node, server
from bench.stream import CHUNKS, OPTIONS, read_rate

FILES = "files"
DATABASE = "PostgreSQL"
OTHER_NODE = "PostgreSQL, viewers on another node"
COMMIT = "a commit"
ADDED = "added"
TICKS = size(50, 2)
TURNS = size(5, 1)
VIEWERS = size(10, 2)
FAN_OUT_CHUNKS = size(5_000, 50)
NODES = {f"{count} {'node' if count == 1 else 'nodes'}": count for count in (1, 2, 4)}
FAILOVER_LEASE_S = 9.0 if IS_SMOKE else 3.0
"""Short, so that a round is fast. A node on a busy machine may lose such a lease, and the smoke test makes it busy."""

FAILOVER_TIMEOUT_S = 60.0
_BLOCK = b"x" * 400


def no_store() -> str | None:
    """Choose files."""


STORES: dict[str, Callable[[], str | None]] = {DATABASE: new_database, FILES: no_store}


class SharedRuns:
    """Runs with several figures, each of which belongs to another contender or measure."""

    def __init__(self, run: Callable[[], Mapping[str, float]]) -> None:
        self._run = run
        self._figures: defaultdict[str, deque[float]] = defaultdict(deque)

    def pop(self, name: str) -> float:
        """Return a figure of the oldest run that has not yet returned it, or of a new run."""
        if not self._figures[name]:
            for each, figure in self._run().items():
                self._figures[each].append(figure)
        return self._figures[name].popleft()


def stream(store: str) -> float:
    """Stream through one node. Return thousands of messages per second."""
    with node(STORES[store]()) as running:
        return read_rate(running.run_client(*OPTIONS))


def fan_out(store: str, *, is_remote: bool = False) -> float:
    """Show one session to viewers on its own node or another. Return thousands of messages per second for all."""
    address = STORES[store]()
    options = ["--viewers", str(VIEWERS), "--chunks", str(FAN_OUT_CHUNKS)]
    with ExitStack() as stack:
        owner = stack.enter_context(node(address))
        if is_remote:
            other = stack.enter_context(node(address))
            options += ["--viewers-url", other.url, f"--viewers-token={other.token}"]
        report = owner.run_client(*options)
    expected = (VIEWERS + 1) * FAN_OUT_CHUNKS
    if report["chunks_received"] != expected:
        raise RuntimeError(f"{report['chunks_received']} of {expected} came")
    return report["chunks_per_s"] / 1000


def latencies() -> dict[str, float]:
    """Return the median times of an update and of a commit in ms, and the commits that the database adds.

    The two alternate every half second, because the speed of a disk changes from second to second.
    """
    with node(new_database()) as in_database, node(None) as in_files:
        turns = [
            {DATABASE: update_ms(in_database), COMMIT: commit_ms(), FILES: update_ms(in_files)} for _ in range(TURNS)
        ]
    found = {name: statistics.median(turn[name] for turn in turns) for name in (DATABASE, COMMIT, FILES)}
    return {**found, ADDED: (found[DATABASE] - found[FILES]) / found[COMMIT]}


def update_ms(running: RunningNode) -> float:
    """Return the median time of an update from the agent to a viewer."""
    return 1000 * running.run_client("--ticks", str(TICKS))["update_p50_s"]


def commit_ms() -> float:
    """Return the median time of a commit of one small row on this disk, at the rate of the agent's updates.

    The rate matters, because commits in a row take another time than commits with long pauses between them.
    """
    import psycopg

    taken: list[float] = []
    with psycopg.connect(server().new_database(), autocommit=True) as connection:
        connection.execute("CREATE TABLE block (number int PRIMARY KEY, data bytea)")
        begun = time.perf_counter()
        for number in range(TICKS):
            time.sleep(max(begun + number * TICK_S - time.perf_counter(), 0.0))
            started = time.perf_counter()
            connection.execute("INSERT INTO block VALUES (%s, %s)", (number, _BLOCK))
            taken.append(time.perf_counter() - started)
    return 1000 * statistics.median(taken)


def many_nodes(count: int) -> dict[str, float]:
    """Stream one session on each node. Return thousands of messages per second, and µs of CPU time per message."""
    address = new_database()
    with ExitStack() as stack:
        # Sessions of this agent have a fixed ID, so each node has a different agent name.
        nodes = [stack.enter_context(node(address, "--agent-name", f"node{number}")) for number in range(count)]
        before_s, started = cpu_s(nodes), time.perf_counter()
        with ThreadPoolExecutor(count) as threads:
            running = [threads.submit(each.run_client, *OPTIONS) for each in nodes]
            reports = [each.result() for each in running]
        seconds, taken_s = time.perf_counter() - started, cpu_s(nodes) - before_s
    for report in reports:
        read_rate(report)
    return {"rate": count * CHUNKS / seconds / 1000, "cost": 1e6 * taken_s / (count * CHUNKS)}


def failover_leases() -> float:
    """Kill the node that owns a session. Return the time beyond the lease until another node accepts a prompt."""
    address = new_database()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        script = Path(folder) / "script.yaml"
        script.write_text("- - text: word\n" * 50)
        options = ("--model", f"script:{script}")
        owner, other = (
            stack.enter_context(node(address, *options, agent=(), lease_s=FAILOVER_LEASE_S)) for _ in range(2)
        )
        session_id = say(owner, None)
        started = time.perf_counter()
        owner.process.kill()
        while True:
            try:
                say(other, session_id)
            except RuntimeError:
                if time.perf_counter() - started > FAILOVER_TIMEOUT_S:
                    raise
                time.sleep(0.05)
            else:
                return (time.perf_counter() - started) / FAILOVER_LEASE_S


def say(running: RunningNode, session_id: str | None) -> str:
    """Prompt a session, or a new one, and return its ID."""
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
def fill_database(sessions: int) -> str:
    """Create a database with many sessions: one by the store, the others as copies of it, a hundred per project."""
    import psycopg

    address = new_database()
    home = listing.make_home(1)
    command = dragoman("store", "move", "--store", address)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environ | {"DRAGOMAN_HOME": str(home)})
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_COPIES, {"copies": sessions - 1})
        connection.execute("ANALYZE")
    return address


def list_ms(sessions: int) -> float:
    """Return the median time of the first page of `session/list` from a database."""
    with RawAgent(dragoman("agent", "--store", fill_database(sessions))) as agent:
        agent.initialize()
        for _ in range(listing.WARM_UP_REQUESTS):
            listing.time_list_ms(agent)
        return statistics.median(listing.time_list_ms(agent) for _ in range(listing.REQUESTS))


def _measure(
    title: str,
    unit: str,
    contenders: Mapping[str, Callable[[], float]],
    *targets: Target,
    ratios: tuple[tuple[str, str], ...] = (),
    rounds: int = 5,
) -> Measure:
    return Measure("store", title, unit, contenders, targets, rounds, quick_rounds=1 + rounds // 5, ratios=ratios)


def _taking(runs: SharedRuns, *names: str) -> dict[str, Callable[[], float]]:
    return {name: lambda name=name: runs.pop(name) for name in names}


_latencies = SharedRuns(latencies)
_nodes = {name: SharedRuns(lambda count=count: many_nodes(count)) for name, count in NODES.items()}
_BESIDE_ONE = (("2 nodes", "1 node"), ("4 nodes", "1 node"))

MEASURES = (
    _measure(
        f"{CHUNKS:,} chunks through one node",
        "k msg/s",
        {store: lambda store=store: stream(store) for store in STORES},
        Target(DATABASE, FILES, "at least", 0.5),
    ),
    _measure(
        "an update from the agent to a viewer, p50",
        "ms",
        _taking(_latencies, DATABASE, FILES, COMMIT),
        ratios=((DATABASE, COMMIT),),
    ),
    _measure(
        "latency that the database adds to an update, p50",
        "commits",
        {DATABASE: lambda: _latencies.pop(ADDED)},
        Target(DATABASE, None, "at most", 2.0),
    ),
    _measure(
        f"one session to {VIEWERS} viewers, {FAN_OUT_CHUNKS:,} chunks",
        "k msg/s",
        {
            OTHER_NODE: lambda: fan_out(DATABASE, is_remote=True),
            DATABASE: lambda: fan_out(DATABASE),
            FILES: lambda: fan_out(FILES),
        },
        Target(OTHER_NODE, FILES, "at least", 0.3),
    ),
    _measure(
        f"{CHUNKS:,} chunks on each of several nodes",
        "k msg/s",
        {name: lambda runs=runs: runs.pop("rate") for name, runs in _nodes.items()},
        ratios=_BESIDE_ONE,
        rounds=3,
    ),
    _measure(
        "processor time of nodes and database for a message",
        "µs",
        {name: lambda runs=runs: runs.pop("cost") for name, runs in _nodes.items()},
        ratios=_BESIDE_ONE,
        rounds=3,
    ),
    _measure("from the death of a node to the next turn elsewhere", "leases", {DATABASE: failover_leases}, rounds=3),
    _measure(
        "first page of session/list from a database",
        "ms",
        {f"over {sessions:,}": lambda sessions=sessions: list_ms(sessions) for sessions in (10_000, 100)},
        Target("over 10,000", "over 100", "at most", 2.0),
    ),
)
