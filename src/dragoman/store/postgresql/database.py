"""A database: a pool of connections, bounded waits, and clear errors.

Each statement is a separate transaction and needs no state of its connection. So a pooler such as PgBouncer can be used
in transaction mode: no statement is prepared, nothing is SET, and no advisory lock outlives a transaction. Only libpq
knows the password.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, TypeAlias

from psycopg import AsyncConnection, DataError, Error, InterfaceError, OperationalError, Rollback, errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus

from dragoman.store.postgresql.errors import DatabaseRefusedError, DatabaseUnavailableError, InvalidStoreAddressError

Row: TypeAlias = tuple[Any, ...]
Params: TypeAlias = Sequence[Any] | Mapping[str, Any]
Connection: TypeAlias = AsyncConnection[Row]

SCHEMES = ("postgresql://", "postgres://")

MAX_CONNECTIONS = 8
"""The number of concurrent commits. A database makes one write to its disk for all commits that wait at that time."""

ATTEMPT_S = 5.0
"""The limit for one statement, including the connection. A slower database counts as unavailable."""

PATIENCE_S = 10.0
"""The limit for all attempts of a user's request. A restart or a failover of the database takes some seconds."""

_FIRST_PAUSE_S = 0.05
_MAX_PAUSE_S = 1.0

_DEFAULTS = {
    "application_name": "dragoman",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "3",
    "keepalives_count": "3",
}
"""Replaces the defaults of libpq, which waits for minutes. Settings in the address have precedence."""

_SEVERAL_HOSTS = {"target_session_attrs": "read-write"}
"""If there are several hosts, the writable one is used. A failover changes which one that is."""

_PASSING = (
    OperationalError,
    InterfaceError,
    TimeoutError,
    OSError,
    errors.ReadOnlySqlTransaction,
    errors.SerializationFailure,
    errors.DeadlockDetected,
)
"""Errors after which a repeated attempt may succeed: restarts, failovers, full disks, too many connections."""

_ADVICE: tuple[tuple[type[Error], str], ...] = (
    (errors.DiskFull, "free some space on its disk"),
    (
        errors.ReadOnlySqlTransaction,
        "use its primary, or all hosts (postgresql://USER@HOST1,HOST2/NAME): the writable one is used",
    ),
    (errors.TooManyConnections, "raise its max_connections, or put PgBouncer in front of it"),
)


_NO_TEXT = "use session ids without NUL characters"


class Database:
    """One database, for any number of tasks at once."""

    def __init__(self, address: str, *, max_connections: int = MAX_CONNECTIONS) -> None:
        """Raises InvalidStoreAddressError. The first statement connects."""
        self.name, self._address = _read_address(address)
        """`name` is the address without the password, for messages."""
        self._idle: list[Connection] = []
        self._free = asyncio.Semaphore(max_connections)
        self._is_closed = False

    async def fetch(self, query: LiteralString, params: Params = (), *, patience_s: float = PATIENCE_S) -> list[Row]:
        """Run one statement and return its rows. Retry it while the database is unavailable.

        The statement must be safe to repeat. Raises DatabaseUnavailableError, DatabaseRefusedError.
        """
        deadline = time.monotonic() + patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            try:
                return await self.fetch_once(query, params)
            except DatabaseUnavailableError:
                if time.monotonic() + pause_s > deadline:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)

    async def fetch_once(self, query: LiteralString, params: Params = ()) -> list[Row]:
        """Run one statement and return its rows. Raises DatabaseUnavailableError, DatabaseRefusedError."""
        async with self._explained(), asyncio.timeout(ATTEMPT_S), self._connection() as connection:
            cursor = await connection.execute(query, params, binary=True)
            return await cursor.fetchall() if cursor.description is not None else []

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Connection]:
        """Run the statements of the body in one transaction.

        Raises DatabaseUnavailableError, DatabaseRefusedError, and any OSError of the body.
        """
        failure: OSError | None = None
        async with self._explained(), self._connection() as connection, connection.transaction():
            try:
                yield connection
            except OSError as error:  # an error of the body, for example of its disk. psycopg raises other errors.
                failure = error
                raise Rollback from error
        if failure is not None:
            raise failure

    async def connect(self) -> Connection:
        """Return a new connection that is not part of the pool. Raises the errors of psycopg."""
        return await AsyncConnection.connect(self._address, autocommit=True, prepare_threshold=None)

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Connection]:
        """Borrow a connection from the pool. After an error it is closed instead of used again."""
        async with self._free:
            connection = self._idle.pop() if self._idle else await self.connect()
            try:
                yield connection
            except BaseException as error:
                # After a failover the old primary may still answer, but it rejects writes.
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
            advice = next((advice for kind, advice in _ADVICE if isinstance(error, kind)), "")
            raise DatabaseUnavailableError(self.name, _describe(error), advice) from error
        except DataError as error:
            raise DatabaseRefusedError(self.name, _describe(error), _NO_TEXT) from error
        except Error as error:
            raise DatabaseRefusedError(self.name, _describe(error)) from error


def check_address(address: str) -> None:
    """Raise InvalidStoreAddressError for a text that is not the address of a database."""
    _read_address(address)


def _read_address(address: str) -> tuple[str, str]:
    """Return the database's name for messages, without the password, and the address with our defaults for libpq."""
    problem = "it does not begin with postgresql://"
    if address.startswith(SCHEMES):
        try:
            given = conninfo_to_dict(address)
        except Error:  # its message can contain the password
            problem = "libpq cannot read it"
        else:
            host, port = given.get("host") or "localhost", given.get("port")
            defaults = _DEFAULTS | _SEVERAL_HOSTS if "," in str(host) else _DEFAULTS
            settings = {name: value for name, value in defaults.items() if name not in given}
            place = f"{host}:{port}" if port else f"{host}"
            return f"{given.get('dbname') or given.get('user') or ''} at {place}", make_conninfo(address, **settings)
    raise InvalidStoreAddressError(
        f"the store address is not valid: {problem}; expected one such as "
        "postgresql://USER@HOST/DATABASE, with the password in PGPASSWORD or ~/.pgpass"
    )


def _describe(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {ATTEMPT_S:g} s"
    text = error.diag.message_primary if isinstance(error, Error) else None
    return " ".join((text or str(error) or type(error).__name__).split())
