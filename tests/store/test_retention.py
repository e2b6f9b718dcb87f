"""Retention in a database: old sessions are archived or deleted, and never one that a living process has open."""

import msgspec
import psycopg
import pytest

from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.retention import prune
from dragoman.store.postgresql.schema import VERSION, migrate
from dragoman.store.retention import BadRetention, RetentionPolicy, find_policy, make_policy
from tests.store.contract import list_ids
from tests.store.making import fork, new_header, read_all, reread, update, write_session
from tests.waiting import until

DAY = 86400.0


def query(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def age(address, session_id, days):
    """Have a session be written to so many days ago."""
    query(
        address, f"UPDATE dragoman_session SET updated = updated - {days}::bigint * 86400000 WHERE id = '{session_id}'"
    )


async def run(address, *, is_dry=False, **policy):
    database = Database(address)
    try:
        return await prune(database, RetentionPolicy(**policy), is_dry=is_dry)
    finally:
        await database.close()


@pytest.fixture
async def aged(address, another_postgres_store):
    """Sessions that were written to 0, 10, 20 … days ago, newest first, owned by nobody."""
    store = another_postgres_store()
    headers = [await write_session(store, title=f"{days} days") for days in range(0, 70, 10)]
    for number, header in enumerate(headers):
        age(address, header.id, 10 * number)
    return [header.id for header in headers]


async def test_old_sessions_are_deleted_with_all_that_they_have_and_younger_ones_archived(
    address, aged, another_postgres_store
):
    done = await run(address, delete_after_s=45 * DAY, archive_after_s=15 * DAY)
    assert (done.deleted, done.archived, done.open) == (2, 3, 0)
    store = another_postgres_store()
    assert await list_ids(store) == aged[:2]
    archived = (await store.page(archived="only")).sessions
    assert [session.id for session in archived] == aged[2:5]
    assert [session.title for session in archived] == ["20 days", "30 days", "40 days"]
    assert query(address, "SELECT count(DISTINCT session) FROM dragoman_block") == [(5,)]
    assert (await run(address, delete_after_s=45 * DAY, archive_after_s=15 * DAY)).archived == 0


async def test_the_newest_sessions_are_kept_up_to_a_size(address, aged, another_postgres_store):
    ((size,),) = query(address, "SELECT max(bytes) FROM dragoman_end")
    done = await run(address, max_bytes=3 * size)
    assert done.deleted == 4
    assert await list_ids(another_postgres_store()) == aged[:3]


async def test_a_dry_run_tells_each_session_once_and_changes_nothing(address, aged, another_postgres_store):
    told = await run(address, is_dry=True, delete_after_s=45 * DAY, max_bytes=0, archive_after_s=5 * DAY)
    assert (told.deleted, told.archived) == (7, 0)
    assert [session.id for session in told.examples[:2]] == [aged[-1], aged[-2]]
    assert told.deleted_bytes == sum(session.size_bytes for session in told.examples)
    assert await list_ids(another_postgres_store()) == aged


async def test_a_session_stays_while_any_part_of_it_is_open(address, aged, another_postgres_store):
    log = await another_postgres_store().open(aged[-1])
    journals = PostgresStore(address, "journal")
    journal = await journals.create(msgspec.structs.replace(new_header(), id=aged[-2]))
    done = await run(address, delete_after_s=45 * DAY)
    assert (done.deleted, done.open) == (0, 2)
    query(address, "UPDATE dragoman_node SET beat = beat - interval '1 hour'")  # the two processes are gone
    query(address, f"INSERT INTO dragoman_label VALUES ('agent', '{aged[-1]}', ''), ('agent', '{aged[0]}', '')")
    assert (await run(address, delete_after_s=45 * DAY)).deleted == 2
    assert query(address, "SELECT id FROM dragoman_label") == [(aged[0],)]
    assert journal.failure is log.failure is None
    await journals.close()


async def test_many_sessions_go_in_several_batches(address, another_postgres_store):
    store = another_postgres_store()
    ids = [(await write_session(store)).id for _ in range(3)]
    query(
        address,
        "WITH made AS (INSERT INTO dragoman_session (scope, id, header, cwd, prompted, updated) "
        "SELECT 'agent', 'old-' || n, '{}', '/', true, n FROM generate_series(1, 120) n RETURNING key) "
        "INSERT INTO dragoman_end (session, checksum, bytes) SELECT key, 0, 1000000 FROM made",
    )
    done = await run(address, delete_after_s=DAY)
    assert (done.deleted, done.deleted_bytes) == (120, 120_000_000)
    assert set(await list_ids(store)) == set(ids)


async def test_one_of_the_nodes_follows_the_policy_of_the_setting(address, aged, another_postgres_store):
    policy = RetentionPolicy(delete_after_s=45 * DAY)
    nodes = [another_postgres_store(retention=policy) for _ in range(3)]
    logs = [await node.create(new_header()) for node in nodes]
    await until(lambda: query(address, "SELECT count(*) FROM dragoman_session") == [(8,)])
    assert len(query(address, "SELECT node FROM dragoman_task")) == 1
    assert await list_ids(nodes[0]) == aged[:5]
    for log in logs:
        await log.close()


async def test_the_size_of_a_session_is_that_of_its_blocks_also_in_tables_that_are_upgraded(
    address, another_postgres_store
):
    store = another_postgres_store()
    header, copy = await write_session(store), new_header()
    log = await store.open(header.id)
    assert await read_all(log)
    log.append(update(b'"%b"' % (b"x" * 100_000), header.id))
    await log.close()
    await fork(store, header.id, copy)
    sizes = (
        "SELECT bytes = (SELECT sum(length(data)) FROM dragoman_block WHERE session = e.session) FROM dragoman_end e"
    )
    assert query(address, sizes) == [(True,), (True,)]
    query(
        address,
        "ALTER TABLE dragoman_end DROP COLUMN bytes; DROP TABLE dragoman_task, dragoman_approval, "
        "dragoman_label, dragoman_message, dragoman_share, dragoman_code; "
        "ALTER TABLE dragoman_node DROP COLUMN agents, DROP COLUMN key; DROP FUNCTION dragoman_delete_blocks CASCADE; "
        "ALTER TABLE dragoman_block ADD FOREIGN KEY (session) REFERENCES dragoman_session ON DELETE CASCADE; "
        "ALTER TABLE dragoman_session DROP COLUMN shown; "
        "DROP INDEX dragoman_session_by_age, dragoman_session_by_id; DELETE FROM dragoman_schema WHERE version > 1",
    )
    database = Database(address)
    assert await migrate(database) == (1, VERSION)
    await database.close()
    assert query(address, sizes) == [(True,), (True,)]
    assert (await reread(store, header.id))[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delete-after=soon", "expected a number and one of m, h, d, w, y"),
        ("max-size=5", "expected a number and one of MB, GB, TB"),
        ("older=3d", "there is no rule 'older'"),
    ],
)
def test_a_setting_that_cannot_be_read_is_refused_in_words(text, words, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_STORE_PRUNE", text)
    with pytest.raises(BadRetention, match=words):
        find_policy()


def test_a_setting_has_the_rules_of_the_command(monkeypatch):
    assert find_policy() is None
    monkeypatch.setenv("DRAGOMAN_STORE_PRUNE", "archive-after=2w delete-after=1.5y max-size=50GB")
    assert find_policy() == RetentionPolicy(14 * DAY, 1.5 * 365 * DAY, 50 * 10**9)
    with pytest.raises(BadRetention, match="no rule of retention is given"):
        make_policy({})
