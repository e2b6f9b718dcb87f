"""The state of a database, for people: its nodes, and the sessions of each scope with their owners."""

import msgspec

from dragoman.store.postgresql import schema
from dragoman.store.postgresql.database import Database

OPEN_SESSIONS = 50
"""Open sessions that are named."""

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


class NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """A process that uses the database."""

    host: str
    pid: int
    is_alive: bool
    """Whether its heartbeat is younger than its lease."""
    silent_s: float
    """The time since its last heartbeat."""
    lease_s: float
    sessions: int
    """Sessions that it owns."""
    agents: list[str]
    """The agents that it serves to viewers, if it is a bridge."""
    waiting: int
    """Messages of other nodes that it has not taken yet."""
    is_pruning: bool
    """Whether it is the one that follows the retention policy."""


class ScopeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The sessions of one agent."""

    scope: str
    sessions: int
    prompted: int
    """Those that lists show."""
    owned: int
    """Those that a process has open."""
    size_bytes: int


class OpenSession(msgspec.Struct, frozen=True, rename="camel"):
    """A session with the process that owns it."""

    scope: str
    id: str
    title: str | None
    host: str
    pid: int
    written_s: float
    """The time since lists show a change of it."""


class StoreStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a database."""

    database: str
    version: int
    """Of its tables."""
    nodes: list[NodeStatus]
    scopes: list[ScopeStatus]
    open: list[OpenSession]
    """The open sessions that were written to last."""
    block_bytes: int
    """The size of the blocks with their indexes, and with the room that deleted ones have left."""
    database_bytes: int


async def read_status(database: Database) -> StoreStatus:
    """Read the state of a database; raises SchemaMismatch, DatabaseUnavailable, DatabaseRefused."""
    await schema.check(database)
    nodes = [NodeStatus(*row) for row in await database.fetch(_NODES)]
    scopes = [ScopeStatus(*row) for row in await database.fetch(_SCOPES)]
    opened = [OpenSession(*row) for row in await database.fetch(_OPEN, (OPEN_SESSIONS,))]
    ((blocks, whole),) = await database.fetch(_SIZE)
    return StoreStatus(database.name, schema.VERSION, nodes, scopes, opened, blocks, whole)
