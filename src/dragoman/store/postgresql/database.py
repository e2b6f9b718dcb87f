"""A database: a pool of connections, bounded waits, and errors in words.

Each statement is a transaction of its own and uses nothing of a session but the connection for its time, so that a
pooler such as PgBouncer may stand between, in transaction mode: no statement is prepared, nothing is SET, no advisory
lock outlives a transaction. The password is known to libpq alone.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeAlias

from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError, Rollback, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from dragoman.store.postgresql.errors import BadStoreAddress, DatabaseRefused, DatabaseUnavailable

Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
Connection: TypeAlias = AsyncConnection[Row]

SCHEMES = ("postgresql://", "postgres://")

MAX_CONNECTIONS = 8
"""Commits at the same time: a database makes one write to its disk for all that wait together."""

ATTEMPT_S = 5.0
"""For one statement, the connection included: a database that needs longer is as good as away."""

PATIENCE_S = 10.0
"""For a request of a person, over all its attempts: a restart or a failover of the database takes some seconds."""

_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 1.0

_DEFAULTS = {
    "application_name": "dragoman",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
}
"""In place of those of libpq, which waits for minutes; the address counts before these."""

_SEVERAL_HOSTS = {"target_session_attrs": "read-write"}
"""Of several hosts the one that takes writes is used: after a failover it is another one."""

_PASSING = (
    OperationalError,
    InterfaceError,
    TimeoutError,
    OSError,
    errors.ReadOnlySqlTransaction,
    errors.SerializationFailure,
    errors.DeadlockDetected,
)
"""Errors after which the same may succeed: restarts, failovers, full disks, too many connections."""

_ADVICE: tuple[tuple[type[Error], str], ...] = (
    (errors.DiskFull, "free some space on its disk"),
    (
        errors.ReadOnlySqlTransaction,
        "name its primary, or all hosts (postgresql://USER@HOST1,HOST2/NAME): the one that takes writes is used",
    ),
    (errors.TooManyConnections, "raise its max_connections, or put PgBouncer before it"),
)


_NO_TEXT = "give sessions ids without NUL characters"


class Database:
    """One database, for any number of tasks at once."""

    def __init__(self, address: str, *, max_connections: int = MAX_CONNECTIONS) -> None:
        """Raises BadStoreAddress; nothing is connected before the first statement."""
        self.name, self._address = _read_address(address)
        """`name` is the address without the password, for messages."""
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(max_connections)
        self._is_closed = False

    async def fetch(self, query: LiteralString, params: Params = (), *, patience_s: float = PATIENCE_S) -> list[Row]:
        """Run one statement and return its rows, again and again while the database is away.

        The statement must do no harm when it is done twice. Raises DatabaseUnavailable, DatabaseRefused.
        """
        deadline = time.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self.fetch_once(query, params)
            except DatabaseUnavailable:
                if time.monotonic() + pause_s > deadline:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    async def fetch_once(self, query: LiteralString, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows; raises DatabaseUnavailable, DatabaseRefused."""
        async with self._explained(), asyncio.timeout(ATTEMPT_S), self._connection() as connection:
            cursor = await connection.execute(query, params, binary=True)
            return await cursor.fetchall() if cursor.description is not None else []

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """Run several statements, all or none; raises DatabaseUnavailable, DatabaseRefused, and the body's own."""
        failure: OSError | None = None
        async with self._explained(), self._connection() as connection, connection.transaction():
            try:
                yield connection
            except OSError as error:  # such as one of a disk that the body reads: psycopg has errors of its own
                failure = error
                raise Rollback from error
        if failure is not None:
            raise failure

    async def connect(self) -> Connection:
        """Make a connection of one's own, beside the pool; raises as psycopg does."""
        return await AsyncConnection.connect(self._address, autocommit=True, prepare_threshold=None)

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        """Borrow a connection; one that met an error is not used again."""
        async with self._free:
            connection = self._idle.pop() if self._idle else await self.connect()
            try:
                yield connection
            except BaseException as error:
                # After a failover the old primary may still answer, and takes no writes.
                if isinstance(error, _PASSING) or connection.info.transaction_status != TransactionStatus.IDLE:
                    await connection.close()
                raise
            finally:
                if not connection.closed:
                    if self._is_closed:
                        await connection.close()
                    else:
                        self._idle.append(connection)

    @asynccontextmanager
    async def _explained(self) -> AsyncGenerator[None]:
        try:
            yield
        except _PASSING as error:
            advice = next((words for kind, words in _ADVICE if isinstance(error, kind)), "")
            raise DatabaseUnavailable(self.name, _words(error), advice) from error
        except DataError as error:
            raise DatabaseRefused(self.name, _words(error), _NO_TEXT) from error
        except Error as error:
            raise DatabaseRefused(self.name, _words(error)) from error


def check_address(address: str) -> None:
    """Raise BadStoreAddress for a text that is no address of a database."""
    _read_address(address)


def _read_address(address: str) -> tuple[str, str]:
    """Return an address without its password, for people, and with our defaults, for libpq."""
    problem = "it does not begin with postgresql://"
    if address.startswith(SCHEMES):
        try:
            given = conninfo_to_dict(address)
        except Error:  # its words may have the password in them
            problem = "libpq cannot read it"
        else:
            host, port = given.get("host") or "localhost", given.get("port")
            defaults = _DEFAULTS | _SEVERAL_HOSTS if "," in str(host) else _DEFAULTS
            settings = {name: value for name, value in defaults.items() if name not in given}
            place = f"{host}:{port}" if port else f"{host}"
            return f"{given.get('dbname') or given.get('user') or ''} at {place}", make_conninfo(address, **settings)
    raise BadStoreAddress(
        f"that address of a store cannot be read: {problem}; expected one such as "
        "postgresql://USER@HOST/DATABASE, with the password in PGPASSWORD or ~/.pgpass"
    )


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ATTEMPT_S:g} s"
    text = error.diag.message_primary if isinstance(error, Error) else None
    return " ".join((text or str(error) or type(error).__name__).split())
