"""Fixtures with a PostgreSQL server for tests."""

import pytest

from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.schema import migrate
from tests.store.pgbouncer import PgBouncer
from tests.store.postgres_server import PostgresServer, find_program, find_programs


@pytest.fixture(scope="session")
def postgres():
    """A server that all tests of a worker share."""
    yield from _serve()


@pytest.fixture
def own_postgres():
    """A server for one test, which may stop it."""
    yield from _serve()


@pytest.fixture
def two_postgres(own_postgres):
    """Two servers for a test of a failover."""
    for another in _serve():
        yield own_postgres, another


def _serve():
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not on this machine, or cannot be run here: see scripts/postgresql")
    server = PostgresServer(programs)
    server.start()
    yield server
    server.remove()


@pytest.fixture(scope="session")
def bouncer(postgres):
    """A pooler in front of the worker's server."""
    program = find_program("pgbouncer")
    if program is None:
        pytest.skip("PgBouncer is not on this machine, or cannot be run here: see scripts/postgresql")
    started = PgBouncer(program, postgres)
    yield started
    started.remove()


@pytest.fixture
async def address(postgres):
    """An empty database with the tables. Removing hundreds of them at the end would take longer than a test may."""
    made = await make_database(postgres)
    yield made
    postgres.drop_database(made)


async def make_database(server, options=""):
    """Make a database with the tables. Copying the first such database takes half the time."""
    if server.with_tables is None:
        address = server.new_database()
        database = Database(address)
        await migrate(database)
        await database.close()
        server.with_tables = address.rpartition("/")[2]
    return server.new_database(f"TEMPLATE {server.with_tables} {options}")


@pytest.fixture
async def another_postgres_store(address):
    """Make stores in one database. Two stores represent two processes."""
    made = []

    def make(**options):
        made.append(PostgresStore(address, "agent", **options))
        return made[-1]

    yield make
    for store in made:
        await store.close()
