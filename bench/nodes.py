"""Lists from a node that shares a database with others: a page with few and with many sessions."""

import statistics
from functools import cache
from time import perf_counter

from bench.measure import Measure, Target
from bench.peers.ws_client import Viewer, prompt
from bench.size import size
from bench.store import RunningNode, new_database, node

REQUESTS = size(100, 5)
WARM_UP_REQUESTS = size(10, 1)

_COPIES = """
WITH made AS (
    INSERT INTO dragoman_session (scope, id, header, cwd, title, prompted, updated)
    SELECT s.scope, n.id, convert_to(replace(convert_from(s.header, 'UTF8'), s.id, n.id), 'UTF8'),
        s.cwd, s.title, true, s.updated - 60000 * n.number
    FROM dragoman_session s, (
        SELECT number, gen_random_uuid()::text AS id FROM generate_series(1, %s) AS number) AS n
    RETURNING key)
INSERT INTO dragoman_end (session, last, checksum) SELECT key, 0, 0 FROM made
"""


def _connect(running: RunningNode) -> Viewer:
    viewer = Viewer(running.url, running.token)
    viewer.initialize()
    return viewer


@cache
def _filled(sessions: int) -> str:
    """Create a database with `sessions` sessions. A node creates the first, and the others are copies."""
    import psycopg

    address = new_database()
    with node(address) as running:
        viewer = _connect(running)
        session_id = viewer.call("session/new", {"cwd": "/", "mcpServers": []})["sessionId"]
        viewer.call("session/prompt", prompt(session_id, {"chunks": 1, "size": 40}))
        viewer.socket.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(_COPIES, (sessions - 1,))
        connection.execute("ANALYZE")
    return address


def list_ms(sessions: int) -> float:
    """Return the median time of the first page of `session/list` from a node."""
    with node(_filled(sessions)) as running:
        viewer = _connect(running)
        taken: list[float] = []
        for _ in range(WARM_UP_REQUESTS + REQUESTS):
            started = perf_counter()
            viewer.call("session/list", {})
            taken.append(perf_counter() - started)
        viewer.socket.close()
    return 1000 * statistics.median(taken[WARM_UP_REQUESTS:])


MEASURES = (
    Measure(
        part="store",
        title="first page of session/list of a node",
        unit="ms",
        contenders={f"over {sessions:,}": lambda sessions=sessions: list_ms(sessions) for sessions in (10_000, 100)},
        targets=(Target("over 10,000", "over 100", "at most", 2.0),),
        rounds=5,
        quick_rounds=2,
    ),
)
