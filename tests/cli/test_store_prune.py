"""`dragoman store prune` on a home and on a database."""

import json
import time

import psycopg
import pytest

from dragoman.store import FileStore
from dragoman.store.naming import log_path
from dragoman.store.postgresql import PostgresStore
from tests.bridge.guard.serving import serving
from tests.commands import start_dragoman
from tests.store.making import make_log, new_header, turn_end, write_session
from tests.waiting import wait_until


def prune(*options):
    done = start_dragoman("store", "prune", *options, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_old_session(home, days):
    """Write a session that ended this many days ago, as its process would have."""
    header = new_header()
    path = log_path(home, header.cwd, header.id)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    then_ms = int((time.time() - 86400 * days) * 1000)
    path.write_bytes(b"".join(make_log(header, [("turn", turn_end(f"{days} days"))], time=then_ms)))
    return header.id


async def titles(home, archived):
    store = FileStore(home)
    try:
        return {session.title for session in (await store.page(archived=archived)).sessions}
    finally:
        await store.close()


async def test_old_sessions_of_a_home_are_pruned_and_open_ones_stay(home):
    notes = home / "agents" / "notes"
    for place in (home, notes):
        for days in (0, 40, 400):
            write_old_session(place, days)
    rules = ("--archive-after", "30d", "--delete-after", "1y")
    result = prune(*rules, "--dry-run")
    assert (result["archived"], result["deleted"]) == (2, 2)
    assert {session["scope"] for session in result["examples"]} == {"log", "log:notes"}
    holding = FileStore(home)
    log = await holding.open(write_old_session(home, 500))
    done = prune(*rules)
    assert (done["archived"], done["deleted"], done["open"]) == (2, 2, 1)
    await log.close()
    await holding.close()
    for place in (home, notes):
        assert await titles(place, "only") == {"40 days"}
    assert await titles(notes, "exclude") == {"0 days"}
    assert prune("--max-size", "0.0001MB")["deleted"] > 0


async def test_sessions_of_a_database_are_pruned_by_the_command(address):
    store = PostgresStore(address, "log")
    header = await write_session(store, title="A title")
    await store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_session SET updated = 0")
    done = start_dragoman("store", "prune", "--store", address, "--delete-after", "1w", "--dry-run")
    assert "would be deleted: 1" in done.stdout
    assert f"1970-01-01  log  {header.id}" in done.stdout
    assert prune("--store", address, "--delete-after", "1w")["deleted"] == 1
    assert prune("--store", address, "--delete-after", "1w")["deleted"] == 0


async def test_bridge_applies_the_retention_setting(address, home):
    store = PostgresStore(address, "journal:other")
    await write_session(store)
    await store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_session SET updated = 0")
        with serving(home, "--store", address, DRAGOMAN_STORE_PRUNE="delete-after=1w"):
            wait_until(lambda: connection.execute("SELECT count(*) FROM dragoman_session").fetchall() == [(0,)])


@pytest.mark.parametrize(
    ("options", "words"),
    [((), "no retention rule was given"), (("--delete-after", "old"), "expected a number and one of m, h, d, w, y")],
)
def test_empty_or_invalid_rules_are_refused(options, words):
    done = start_dragoman("store", "prune", *options)
    assert done.returncode == 2
    assert words in done.stderr
