"""The store in PostgreSQL, against a real server: processes and the database itself come and go."""

import asyncio
import subprocess
from contextlib import suppress

import psycopg
import pytest

from dragoman.errors import LogFailed, SessionBusy, SessionUnknown
from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.errors import BadStoreAddress, DatabaseUnavailable, Fenced, LeaseLost, SchemaMismatch
from dragoman.store.postgresql.node import Node
from dragoman.store.postgresql.schema import VERSION, migrate, read_version
from dragoman.store.postgresql.session_table import READ_BYTES
from tests.store.contract import StoreContract
from tests.store.making import new_header, read_all, reread, turn_end, update, write_session
from tests.store.postgres import make_database
from tests.store.postgres_server import give_to_server
from tests.store.tiny_disk import mounted
from tests.waiting import PATIENCE_S, until, wait_until


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
    """Have all nodes be silent for longer than any lease."""
    execute(address, "UPDATE dragoman_node SET beat = beat - interval '1 hour'")


def set_read_only(server, *, read_only):
    """Have a server take writes or not, also on connections that are open."""
    value = "on" if read_only else "off"
    execute(server.address("postgres"), f"ALTER SYSTEM SET default_transaction_read_only = {value}")
    execute(server.address("postgres"), "SELECT pg_reload_conf()")
    # Connections that are open are told before one that is made later sees it.
    wait_until(lambda: read_one(server.address("postgres"), "SHOW default_transaction_read_only") == value)


async def append(log, payload):
    log.append(update(payload, log.header.id))
    await log.flush()


async def payloads(store, session_id):
    return [data for _, kind, data in (await reread(store, session_id))[0] if kind == "update"]


class TestOwners:
    async def test_a_session_of_a_silent_node_is_taken_over_and_the_old_owner_writes_nothing(
        self, address, another_postgres_store
    ):
        header = new_header()
        old = await another_postgres_store().create(header)
        await append(old, b"1")
        taker = another_postgres_store()
        with pytest.raises(SessionBusy):
            await taker.open(header.id)
        end_leases(address)
        new = await taker.open(header.id)
        assert [data for _, _, data in await read_all(new)] == [b"1"]
        with pytest.raises(Fenced, match="taken over by another process"):
            await append(old, b'"lost"')
        assert old.failure is not None
        await append(new, b"2")
        await new.close()
        assert await payloads(taker, header.id) == [b"1", b"2"]

    async def test_a_fenced_owner_changes_no_list_either(self, address, another_postgres_store):
        header = await write_session(another_postgres_store(), title="Right")
        old = await another_postgres_store().open(header.id)
        await read_all(old)
        end_leases(address)
        taker = another_postgres_store()
        new = await taker.open(header.id)
        old.title = "Wrong"
        with pytest.raises(Fenced):
            await old.sync()
        assert [session.title for session in (await taker.page()).sessions] == ["Right"]
        await new.close()

    async def test_a_store_that_is_closed_leaves_its_sessions_at_once(self, another_postgres_store):
        leaving, header = another_postgres_store(), new_header()
        log = await leaving.create(header)
        log.append(update(b"1", header.id))
        await leaving.close()
        assert await payloads(another_postgres_store(), header.id) == [b"1"]

    async def test_a_session_that_is_deleted_while_it_is_forked_is_unknown(self, address, another_postgres_store):
        store, header, forked = another_postgres_store(), new_header(), new_header()
        log = await store.create(header)
        for _ in range(3):
            await append(log, b'"%b"' % (b"x" * (READ_BYTES * 3 // 4)))
        await log.close()

        def delete_meanwhile(lines):
            execute(address, "DELETE FROM dragoman_session")
            return lines

        with pytest.raises(SessionUnknown):
            await store.fork(header.id, forked, delete_meanwhile)
        assert await store.find(forked.id) is None

    async def test_sessions_of_two_agents_do_not_meet(self, address, another_postgres_store):
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
        with pytest.raises(DatabaseUnavailable):
            await database.fetch_once("SELECT 1")
        log.append(update(b"3", header.id))
        own_postgres.start()
        await writing
        await log.close()
        assert await payloads(store, header.id) == [b"1", b"2", b"3"]
        await store.close()

    async def test_what_was_committed_though_its_answer_was_lost_is_written_once(self, address, another_postgres_store):
        store, header = another_postgres_store(), new_header()
        log = await store.create(header)
        await append(log, b"1")
        # The connections are cut at the moment of the commit, again and again: now before it, now behind it.
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

    async def test_an_unforeseen_error_ends_all_waits_in_words_and_the_session_can_be_opened_again(
        self, another_postgres_store
    ):
        store, header = another_postgres_store(), new_header()
        log = await store.create(header)
        await append(log, b"1")
        log.title = "\ud800"  # no text at all: nothing makes one, and no database takes one
        log.append(update(b"2", header.id))
        for waiting in (log.flush(), asyncio.ensure_future(log.sync())):
            with pytest.raises(LogFailed, match=r"cannot be written .* please report this"):
                await asyncio.wait_for(waiting, PATIENCE_S)
        with pytest.raises(LogFailed):
            log.append(update(b"3", header.id))
        await log.close()
        assert await payloads(store, header.id) == [b"1"]

    async def test_a_log_fails_in_words_before_its_lease_ends_and_can_be_opened_again(
        self, postgres, another_postgres_store
    ):
        store, header = another_postgres_store(lease_s=1.5), new_header()
        log = await store.create(header)
        await append(log, b"1")
        postgres.pause()
        try:
            log.append(update(b"2", header.id))
            with pytest.raises(LeaseLost, match=r"could not be reached within the lease of 1\.5 s"):
                await log.flush()
        finally:
            postgres.go_on()
        with pytest.raises(LogFailed):
            log.append(update(b"3", header.id))
        with suppress(LogFailed):
            await log.close()
        log = await store.open(header.id)
        known = [data for _, _, data in await read_all(log)]
        assert known in ([b"1"], [b"1", b"2"])  # a commit that was under way may have come through
        await append(log, b"4")
        await log.close()
        assert await payloads(store, header.id) == [*known, b"4"]

    async def test_a_full_disk_is_told_in_words_and_the_session_goes_on_when_there_is_room(self, own_postgres):
        with mounted(own_postgres.directory / "disk", "size=24m,mode=777") as disk:
            disk.path.mkdir()
            give_to_server(disk.path)
            execute(own_postgres.address("postgres"), f"CREATE TABLESPACE tiny LOCATION '{disk.path}'")
            address, header = await make_database(own_postgres, "TABLESPACE tiny"), new_header()
            store = PostgresStore(address, "agent", lease_s=1.5)
            log = await store.create(header)
            await append(log, b"1")
            disk.fill()
            log.append(update(b'"%b"' % (b"x" * 200_000), header.id))
            with pytest.raises(DatabaseUnavailable, match="No space left on device; free some space on its disk"):
                await log.flush()
            with suppress(LogFailed):
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

    async def test_a_database_that_takes_no_writes_can_be_read_and_says_what_to_name(self, address):
        store = PostgresStore(address, "agent")
        header = await write_session(store)
        await store.close()
        execute(address, f"ALTER DATABASE {address.rpartition('/')[2]} SET default_transaction_read_only = on")
        reading, database = PostgresStore(address, "agent"), Database(address)
        assert [session.id for session in (await reading.page()).sessions] == [header.id]
        with pytest.raises(DatabaseUnavailable, match="read-only transaction; name its primary, or all hosts"):
            await database.fetch_once("DELETE FROM dragoman_session")
        await reading.close()
        await database.close()

    async def test_an_error_of_a_disk_inside_a_transaction_is_told_as_it_is_and_nothing_is_written(self, address):
        database, failure = Database(address), OSError("a disk that is away")
        await database.fetch("CREATE TABLE noted (number int)")
        with pytest.raises(OSError, match="a disk that is away") as caught:
            async with database.transaction() as connection:
                await connection.execute("INSERT INTO noted VALUES (1)")
                raise failure
        assert caught.value is failure
        assert await database.fetch("SELECT * FROM noted") == []
        await database.close()

    async def test_of_several_hosts_the_one_that_takes_writes_is_used_after_a_failover_too(self, two_postgres):
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

    async def test_a_dump_that_is_restored_has_all_sessions_and_goes_on(
        self, postgres, address, another_postgres_store
    ):
        header, store = new_header(), another_postgres_store()
        log = await store.create(header)
        log.record("turn", turn_end())
        await append(log, b"1")  # it is open while the dump is made
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

    async def test_the_words_of_a_database_that_is_not_there_name_it_and_not_the_password(self):
        database = Database("postgresql://somebody:sesame@127.0.0.1:1/nowhere")
        with pytest.raises(DatabaseUnavailable, match=r"nowhere at 127\.0\.0\.1:1.*refused") as caught:
            await database.fetch_once("SELECT 1")
        assert "sesame" not in str(caught.value)
        await database.close()

    @pytest.mark.parametrize("wrong", ["mysql://sesame@host/name", "postgresql://h/d?sesame=1"])
    def test_an_address_that_cannot_be_read_is_refused_without_repeating_it(self, wrong):
        with pytest.raises(BadStoreAddress, match="expected one such as postgresql://") as caught:
            PostgresStore(wrong, "agent")
        assert "sesame" not in str(caught.value)


class TestSchema:
    async def test_tables_that_are_missing_or_of_another_version_are_told_with_the_next_step(self, postgres):
        address = postgres.new_database()
        store = PostgresStore(address, "agent")
        with pytest.raises(SchemaMismatch, match="`dragoman store init`"):
            await store.page()
        database = Database(address)
        assert await migrate(database) == (0, VERSION)
        assert await migrate(database) == (VERSION, VERSION)
        assert (await store.page()).sessions == []
        execute(address, f"INSERT INTO dragoman_schema (version) VALUES ({VERSION + 1})")
        late = PostgresStore(address, "agent")
        with pytest.raises(SchemaMismatch, match="upgrade dragoman on this machine"):
            await late.page()
        with pytest.raises(SchemaMismatch):
            await migrate(database)
        for each in (store, late, database):
            await each.close()

    async def test_many_programs_may_make_the_tables_at_once(self, postgres):
        databases = [Database(postgres.new_database())] * 4
        results = await asyncio.gather(*map(migrate, databases))
        assert sorted(results) == [(0, VERSION)] + [(VERSION, VERSION)] * 3
        assert await read_version(databases[0]) == VERSION
        await databases[0].close()


async def test_a_node_has_no_lease_before_its_first_heartbeat_and_none_when_it_has_left(address):
    database = Database(address)
    node = Node(database, lease_s=1e9)  # longer than any machine is up, which is what the clock of a lease counts
    assert not node.is_alive
    await node.ensure()
    assert node.is_alive
    await node.leave()
    assert not node.is_alive
    await database.close()


async def test_no_block_stays_of_a_session_that_is_deleted_while_its_owner_writes(address, another_postgres_store):
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
