"""The store in PostgreSQL with a real server, while processes and the database itself stop and start."""

import asyncio
import subprocess
from contextlib import suppress
from uuid import uuid4

import psycopg
import pytest

from dragoman.errors import LogError, SessionBusyError, SessionNotFoundError
from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.errors import (
    DatabaseUnavailableError,
    FencedError,
    InvalidStoreAddressError,
    LeaseLostError,
    SchemaMismatchError,
)
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.schema import VERSION, migrate, read_version
from dragoman.store.postgresql.session_table import READ_BYTES
from tests.store.contract import StoreContract
from tests.store.making import new_header, read_all, reread, turn_end, update, write_session
from tests.store.postgres import make_database
from tests.store.postgres_server import change_owner
from tests.store.tiny_disk import mounted
from tests.waiting import PATIENCE_S, until, wait_until

LEASE_S = 4.5
"""A lease that ends within the test. A busy machine pauses a process for a second, and must not end it earlier."""


class TestContract(StoreContract):
    @pytest.fixture
    def another_store(self, another_postgres_store):
        return another_postgres_store


def execute(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)


def read_one(address, query):
    with psycopg.connect(address) as connection:
        return connection.execute(query).fetchone()[0]


def end_leases(address):
    """Set the heartbeats of all nodes back by more than any lease."""
    execute(address, "UPDATE dragoman_node SET beat = beat - interval '1 hour'")


def set_read_only(server, *, read_only):
    """Make a server read-only or writable, including its open connections."""
    value = "on" if read_only else "off"
    execute(server.address("postgres"), f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    execute(server.address("postgres"), "SELECT pg_reload_conf()")
    # Open connections apply it before a new connection sees it.
    wait_until(lambda: read_one(server.address("postgres"), "SHOW default_transaction_read_only") == value)


async def append(log, payload):
    log.append(update(payload, log.header.id))
    await log.flush()


async def payloads(store, session_id):
    return [data for _, kind, data in (await reread(store, session_id))[0] if kind == "update"]


class TestOwners:
    async def test_a_session_of_a_silent_node_can_be_taken_over(self, address, another_postgres_store):
        header = new_header()
        old = await another_postgres_store().create(header)
        await append(old, b"1")
        taker = another_postgres_store()
        with pytest.raises(SessionBusyError):
            await taker.open(header.id)
        end_leases(address)
        new = await taker.open(header.id)
        assert [data for _, _, data in await read_all(new)] == [b"1"]
        with pytest.raises(FencedError, match="taken over by another process"):
            await append(old, b'"lost"')
        assert old.failure is not None
        await append(new, b"2")
        await new.close()
        assert await payloads(taker, header.id) == [b"1", b"2"]

    async def test_a_fenced_owner_cannot_change_lists(self, address, another_postgres_store):
        header = await write_session(another_postgres_store(), title="Right")
        old = await another_postgres_store().open(header.id)
        await read_all(old)
        end_leases(address)
        taker = another_postgres_store()
        new = await taker.open(header.id)
        old.facts.title = "Wrong"
        with pytest.raises(FencedError):
            await old.sync()
        assert [session.title for session in (await taker.page()).sessions] == ["Right"]
        await new.close()

    async def test_closing_a_store_releases_its_sessions_at_once(self, another_postgres_store):
        leaving, header = another_postgres_store(), new_header()
        log = await leaving.create(header)
        log.append(update(b"1", header.id))
        await leaving.close()
        assert await payloads(another_postgres_store(), header.id) == [b"1"]

    async def test_forking_a_session_deleted_at_that_moment_fails(self, address, another_postgres_store):
        store, header, forked = another_postgres_store(), new_header(), new_header()
        log = await store.create(header)
        for _ in range(3):
            await append(log, b'"%b"' % (b"x" * (READ_BYTES * 3 // 4)))
        await log.close()

        def delete_meanwhile(lines):
            execute(address, "DELETE FROM dragoman_session")
            return lines

        with pytest.raises(SessionNotFoundError):
            await store.fork(header.id, forked, delete_meanwhile)
        assert await store.find(forked.id) is None

    async def test_sessions_of_two_agents_are_separate(self, address, another_postgres_store):
        header = await write_session(another_postgres_store())
        other = PostgresStore(address, "another agent")
        assert await other.find(header.id) is None
        assert (await other.page()).sessions == []
        await other.close()


class TestDatabase:
    async def test_a_restart_of_the_database_loses_nothing(self, own_postgres):
        address, header = await make_database(own_postgres), new_header()
        # The restart itself takes longer than a usual lease on a busy machine.
        store, database = PostgresStore(address, "agent", lease_s=300.0), Database(address)
        log = await store.create(header)
        await append(log, b"1")
        own_postgres.stop()
        log.append(update(b"2", header.id))
        writing = log.flush()
        with pytest.raises(DatabaseUnavailableError):
            await database.fetch_once("SELECT 1")
        log.append(update(b"3", header.id))
        own_postgres.start()
        await writing
        await log.close()
        assert await payloads(store, header.id) == [b"1", b"2", b"3"]
        await store.close()

    async def test_a_commit_with_a_lost_answer_is_written_once(self, address, another_postgres_store):
        store, header = another_postgres_store(), new_header()
        log = await store.create(header)
        await append(log, b"1")
        # The connections are cut repeatedly around the moment of a commit, sometimes before and sometimes after it.
        execute(
            address,
            "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "IF random() < 0.7 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END $$",
        )
        execute(
            address,
            "CREATE CONSTRAINT TRIGGER cut AFTER INSERT ON dragoman_block INITIALLY DEFERRED "
            "FOR EACH ROW EXECUTE FUNCTION cut()",
        )
        for number in range(2, 8):
            await append(log, b"%d" % number)
        await log.close()
        assert await payloads(store, header.id) == [b"%d" % number for number in range(1, 8)]

    async def test_an_unexpected_error_ends_waits_and_allows_reopening(self, another_postgres_store):
        store, header = another_postgres_store(), new_header()
        log = await store.create(header)
        await append(log, b"1")
        log.facts.title = "\ud800"  # not a valid text, so the database refuses it
        log.append(update(b"2", header.id))
        for waiting in (log.flush(), asyncio.ensure_future(log.sync())):
            with pytest.raises(LogError, match=r"cannot be written .* please report this"):
                await asyncio.wait_for(waiting, PATIENCE_S)
        with pytest.raises(LogError):
            log.append(update(b"3", header.id))
        await log.close()
        assert await payloads(store, header.id) == [b"1"]

    async def test_a_log_fails_before_its_lease_ends_and_can_be_reopened(self, postgres, another_postgres_store):
        store, header = another_postgres_store(lease_s=LEASE_S), new_header()
        log = await store.create(header)
        await append(log, b"1")
        postgres.pause()
        try:
            log.append(update(b"2", header.id))
            with pytest.raises(LeaseLostError, match=r"could not be reached within the lease of 4\.5 s"):
                await log.flush()
        finally:
            postgres.resume()
        with pytest.raises(LogError):
            log.append(update(b"3", header.id))
        with suppress(LogError):
            await log.close()
        log = await store.open(header.id)
        known = [data for _, _, data in await read_all(log)]
        assert known in ([b"1"], [b"1", b"2"])  # a commit in progress may have succeeded
        await append(log, b"4")
        await log.close()
        assert await payloads(store, header.id) == [*known, b"4"]

    async def test_a_session_continues_after_a_full_database_disk(self, own_postgres):
        with mounted(own_postgres.directory / "disk", "size=24m,mode=777") as disk:
            disk.path.mkdir()
            change_owner(disk.path)
            execute(own_postgres.address("postgres"), f"CREATE TABLESPACE tiny LOCATION '{disk.path}'")
            address, header = await make_database(own_postgres, "TABLESPACE tiny"), new_header()
            store = PostgresStore(address, "agent", lease_s=LEASE_S)
            log = await store.create(header)
            await append(log, b"1")
            disk.fill()
            log.append(update(b'"%b"' % (b"x" * 200_000), header.id))
            with pytest.raises(DatabaseUnavailableError, match="No space left on device; free some space on its disk"):
                await log.flush()
            with suppress(LogError):
                await log.close()
            assert await payloads(store, header.id) == [b"1"]
            disk.free()
            log = await store.open(header.id)
            await read_all(log)
            await append(log, b"2")
            await store.close()
            own_postgres.stop()
            own_postgres.start()
            later = PostgresStore(address, "agent")
            assert await payloads(later, header.id) == [b"1", b"2"]
            await later.close()

    async def test_a_read_only_database_can_be_read_and_names_the_fix(self, address):
        store = PostgresStore(address, "agent")
        header = await write_session(store)
        await store.close()
        execute(address, f"ALTER DATABASE {address.rpartition('/')[2]} SET default_transaction_read_only = on")
        reading, database = PostgresStore(address, "agent"), Database(address)
        assert [session.id for session in (await reading.page()).sessions] == [header.id]
        with pytest.raises(DatabaseUnavailableError, match="read-only transaction; use its primary, or all hosts"):
            await database.fetch_once("DELETE FROM dragoman_session")
        await reading.close()
        await database.close()

    async def test_a_disk_error_in_a_transaction_is_raised_and_rolls_back(self, address):
        database, failure = Database(address), OSError("a disk that is away")
        await database.fetch("CREATE TABLE noted (number int)")
        with pytest.raises(OSError, match="a disk that is away") as caught:
            async with database.transaction() as connection:
                await connection.execute("INSERT INTO noted VALUES (1)")
                raise failure
        assert caught.value is failure
        assert await database.fetch("SELECT * FROM noted") == []
        await database.close()

    @pytest.mark.extended
    async def test_the_writable_host_is_used_after_a_failover(self, two_postgres):
        for server in two_postgres:
            execute(server.address("postgres"), "CREATE DATABASE pair")
            execute(server.address("pair"), "CREATE TABLE seen (number int)")
        ports = [server.port for server in two_postgres]
        database = Database(f"postgresql://tester@127.0.0.1:{ports[0]},127.0.0.1:{ports[1]}/pair")
        for standby in two_postgres:
            primary = next(server for server in two_postgres if server is not standby)
            set_read_only(primary, read_only=False)
            set_read_only(standby, read_only=True)
            await database.fetch("INSERT INTO seen VALUES (1)")
            assert await database.fetch("SHOW port") == [(str(primary.port),)]
        await database.close()

    async def test_a_restored_dump_has_all_sessions_and_continues(self, postgres, address, another_postgres_store):
        header, store = new_header(), another_postgres_store()
        log = await store.create(header)
        log.record("turn", turn_end())
        await append(log, b"1")  # the session is open during the dump
        dump, restored = postgres.directory / "dump", postgres.new_database()
        for command in (["pg_dump", "-Fc", "-f", dump, address], ["pg_restore", "-d", restored, dump]):
            subprocess.run([str(postgres.programs / command[0]), *map(str, command[1:])], check=True)
        end_leases(restored)
        later = PostgresStore(restored, "agent")
        assert [session.id for session in (await later.page()).sessions] == [header.id]
        copy = await later.open(header.id)
        assert [data for _, kind, data in await read_all(copy) if kind == "update"] == [b"1"]
        await append(copy, b"2")
        await later.close()
        await log.close()

    async def test_errors_name_a_missing_database_without_the_password(self):
        database = Database("postgresql://somebody:sesame@127.0.0.1:1/nowhere")
        with pytest.raises(DatabaseUnavailableError, match=r"nowhere at 127\.0\.0\.1:1.*refused") as caught:
            await database.fetch_once("SELECT 1")
        assert "sesame" not in str(caught.value)
        await database.close()

    @pytest.mark.parametrize("wrong", ["mysql://sesame@host/name", "postgresql://h/d?sesame=1"])
    def test_an_invalid_address_is_refused_without_repeating_it(self, wrong):
        with pytest.raises(InvalidStoreAddressError, match="expected one such as postgresql://") as caught:
            PostgresStore(wrong, "agent")
        assert "sesame" not in str(caught.value)


class TestSchema:
    async def test_errors_about_wrong_tables_name_the_next_step(self, postgres):
        address = postgres.new_database()
        store = PostgresStore(address, "agent")
        with pytest.raises(SchemaMismatchError, match="`dragoman store init`"):
            await store.page()
        database = Database(address)
        assert await migrate(database) == (0, VERSION)
        assert await migrate(database) == (VERSION, VERSION)
        assert (await store.page()).sessions == []
        execute(address, f"INSERT INTO dragoman_schema (version) VALUES ({VERSION + 1})")
        late = PostgresStore(address, "agent")
        with pytest.raises(SchemaMismatchError, match="upgrade dragoman on this machine"):
            await late.page()
        with pytest.raises(SchemaMismatchError):
            await migrate(database)
        for each in (store, late, database):
            await each.close()

    async def test_many_programs_can_create_the_tables_at_once(self, postgres):
        databases = [Database(postgres.new_database())] * 4
        results = await asyncio.gather(*map(migrate, databases))
        assert sorted(results) == [(0, VERSION)] + [(VERSION, VERSION)] * 3
        assert await read_version(databases[0]) == VERSION
        await databases[0].close()


async def test_a_node_has_a_lease_from_its_first_heartbeat_until_it_leaves(address):
    database = Database(address)
    node = Node(database, lease_s=1e9)  # longer than any uptime, which the monotonic clock starts from
    assert not node.is_alive
    await node.ensure()
    assert node.is_alive
    await node.leave()
    assert not node.is_alive
    await database.close()


async def test_an_agent_loses_its_sessions_with_its_bridge(address, another_postgres_store):
    bridge, unknown, header = uuid4(), uuid4(), new_header()
    execute(
        address, f"INSERT INTO dragoman_node (id, name, pid, lease) VALUES ('{bridge}', 'bridge', 1, interval '20 s')"
    )
    agent, other = another_postgres_store(lease_s=600, bridge=bridge), another_postgres_store()
    log = await agent.create(header)
    await append(log, b"1")
    with pytest.raises(SessionBusyError):
        await other.open(header.id)
    execute(address, f"UPDATE dragoman_node SET beat = beat - interval '1 hour' WHERE id = '{bridge}'")
    await until(lambda: log.failure is not None)
    with pytest.raises(LeaseLostError, match=r"by the bridge of this agent within the lease of 20 s"):
        log.append(update(b"2", header.id))
    with pytest.raises(LeaseLostError):
        await agent.create(new_header())
    assert await payloads(other, header.id) == [b"1"]
    execute(address, f"UPDATE dragoman_node SET beat = clock_timestamp() WHERE id = '{bridge}'")
    await (await agent.create(new_header())).close()
    alone = another_postgres_store(bridge=unknown)  # a bridge of another database
    await (await alone.create(new_header())).close()


async def test_deleting_a_session_during_a_write_leaves_no_block(address, another_postgres_store):
    header = await write_session(another_postgres_store())
    with psycopg.connect(address) as writing, psycopg.connect(address, autocommit=True) as looking:
        ((key,),) = writing.execute("SELECT key FROM dragoman_session WHERE id = %s", (header.id,))
        writing.execute("UPDATE dragoman_end SET last = last + 1 WHERE session = %s", (key,))
        writing.execute("INSERT INTO dragoman_block VALUES (%s, 1000, 1000, 'late')", (key,))
        deleting = asyncio.create_task(another_postgres_store().delete(header.id))
        waiting = (
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        await until(lambda: looking.execute(waiting).fetchone() == (1,))
        writing.commit()
        await deleting
        for table in ("dragoman_session", "dragoman_end", "dragoman_block"):
            assert looking.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table
