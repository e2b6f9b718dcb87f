"""The status of a database for the user: its nodes, and the sessions of each scope with their owners."""

import msgspec

from dragoman.store.postgresql import schema
from dragoman.store.postgresql.database import Database

OPEN_SESSIONS = 50
"""The number of open sessions that are listed."""

_NODES = """
SELECT n.name, n.pid, n.beat + n.lease > clock_timestamp(), extract(epoch FROM clock_timestamp() - n.beat)::float,
    extract(epoch FROM n.lease)::float, count(e.session), n.agents,
    (SELECT count(*) FROM dragoman_message m WHERE m.receiver = n.id),
    EXISTS (SELECT FROM dragoman_task t WHERE t.name = 'prune' AND t.node = n.id)
FROM dragoman_node n LEFT JOIN dragoman_end e ON e.owner = n.id
GROUP BY n.id ORDER BY n.started, n.id
"""
_SCOPES = """
SELECT s.scope, count(*), count(*) FILTER (WHERE s.prompted), count(e.owner), sum(e.bytes)::bigint
FROM dragoman_session s JOIN dragoman_end e ON e.session = s.key GROUP BY s.scope ORDER BY s.scope
"""
_OPEN = """
SELECT s.scope, s.id, s.title, n.name, n.pid, extract(epoch FROM clock_timestamp())::float - s.updated / 1000.0::float
FROM dragoman_end e JOIN dragoman_session s ON s.key = e.session JOIN dragoman_node n ON n.id = e.owner
WHERE n.beat + n.lease > clock_timestamp() ORDER BY s.updated DESC LIMIT %s
"""
_SIZE = "SELECT pg_total_relation_size('dragoman_block'), pg_database_size(current_database())"


class NodeStatus(msgspec.Struct, frozen=True):
    """A process that uses the database."""

    host: str
    pid: int
    is_alive: bool
    """Whether its heartbeat is younger than its lease."""
    silent_s: float
    """The time since its last heartbeat."""
    lease_s: float
    sessions: int
    """The number of sessions that it owns."""
    agents: list[str]
    """The agents that it serves to viewers, if it is a bridge."""
    waiting: int
    """The number of messages from other nodes that it has not received yet."""
    is_pruning: bool
    """Whether this node applies the retention policy."""


class ScopeStatus(msgspec.Struct, frozen=True):
    """The sessions of one agent."""

    scope: str
    sessions: int
    prompted: int
    """The number of sessions that lists show."""
    owned: int
    """The number of sessions that a process has open."""
    size_bytes: int


class OpenSession(msgspec.Struct, frozen=True):
    """A session and the process that owns it."""

    scope: str
    id: str
    title: str | None
    host: str
    pid: int
    written_s: float
    """The time since its last change that lists show."""


class StoreStatus(msgspec.Struct, frozen=True):
    """The state of a database."""

    database: str
    version: int
    """The version of its tables."""
    nodes: list[NodeStatus]
    scopes: list[ScopeStatus]
    open: list[OpenSession]
    """The open sessions with the newest writes."""
    block_bytes: int
    """The size of the blocks, with their indexes and the space that deleted blocks have left."""
    database_bytes: int


async def read_status(database: Database) -> StoreStatus:
    """Return the status of a database. Raises SchemaMismatchError, DatabaseUnavailableError, DatabaseRefusedError."""
    await schema.check(database)
    nodes = [NodeStatus(*row) for row in await database.fetch(_NODES)]
    scopes = [ScopeStatus(*row) for row in await database.fetch(_SCOPES)]
    opened = [OpenSession(*row) for row in await database.fetch(_OPEN, (OPEN_SESSIONS,))]
    ((blocks, whole),) = await database.fetch(_SIZE)
    return StoreStatus(database.name, schema.VERSION, nodes, scopes, opened, blocks, whole)
