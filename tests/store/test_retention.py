"""Retention in a database: old sessions are archived or deleted, but never a session that a process has open."""

import msgspec
import psycopg
import pytest

from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.retention import prune
from dragoman.store.retention import InvalidRetentionError, RetentionPolicy, find_policy, make_policy
from tests.store.contract import list_ids
from tests.store.making import fork, new_header, read_all, update, write_session
from tests.waiting import until

DAY = 86400.0


def query(address, statement):
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def age(address, session_id, days):
    """Set the time of a session's last write back by some days."""
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
    """The ids of sessions without an owner that were written to 0, 10, 20 … days ago, newest first."""
    store = another_postgres_store()
    headers = [await write_session(store, title=f"{days} days") for days in range(0, 70, 10)]
    for number, header in enumerate(headers):
        age(address, header.id, 10 * number)
    return [header.id for header in headers]


async def test_old_sessions_are_deleted_and_younger_ones_archived(address, aged, another_postgres_store):
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


async def test_a_dry_run_lists_each_session_once_and_changes_nothing(address, aged, another_postgres_store):
    told = await run(address, is_dry=True, delete_after_s=45 * DAY, max_bytes=0, archive_after_s=5 * DAY)
    assert (told.deleted, told.archived) == (7, 0)
    assert [session.id for session in told.examples[:2]] == [aged[-1], aged[-2]]
    assert told.deleted_bytes == sum(session.size_bytes for session in told.examples)
    assert await list_ids(another_postgres_store()) == aged


async def test_a_session_is_kept_while_any_part_is_open(address, aged, another_postgres_store):
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


async def test_many_sessions_are_deleted_in_batches(address, another_postgres_store):
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


async def test_one_node_at_a_time_applies_the_policy(address, aged, another_postgres_store):
    policy = RetentionPolicy(delete_after_s=45 * DAY)
    nodes = [another_postgres_store(retention=policy) for _ in range(3)]
    logs = [await node.create(new_header()) for node in nodes]
    await until(lambda: query(address, "SELECT count(*) FROM dragoman_session") == [(8,)])
    assert len(query(address, "SELECT node FROM dragoman_task")) == 1
    assert await list_ids(nodes[0]) == aged[:5]
    for log in logs:
        await log.close()


async def test_the_size_of_a_session_is_that_of_its_blocks(address, another_postgres_store):
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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("delete-after=soon", "expected a number and one of m, h, d, w, y"),
        ("max-size=5", "expected a number and one of MB, GB, TB"),
        ("older=3d", "unknown retention rule 'older'"),
    ],
)
def test_an_invalid_setting_is_refused(text, words, monkeypatch):
    monkeypatch.setenv("DRAGOMAN_STORE_PRUNE", text)
    with pytest.raises(InvalidRetentionError, match=words):
        find_policy()


def test_the_setting_has_the_same_rules_as_the_command(monkeypatch):
    assert find_policy() is None
    monkeypatch.setenv("DRAGOMAN_STORE_PRUNE", "archive-after=2w delete-after=1.5y max-size=50GB")
    assert find_policy() == RetentionPolicy(14 * DAY, 1.5 * 365 * DAY, 50 * 10**9)
    with pytest.raises(InvalidRetentionError, match="no retention rule was given"):
        make_policy({})
