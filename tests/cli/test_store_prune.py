"""`dragoman store prune`, on a home and on a database."""

import json
import time

import psycopg
import pytest

from dragoman.store import FileStore
from dragoman.store.naming import log_path
from dragoman.store.postgresql import PostgresStore
from tests.bridge.guard.serving import serving
from tests.commands import dragoman
from tests.store.making import make_log, new_header, turn_end, write_session
from tests.waiting import wait_until


def prune(*options):
    done = dragoman("store", "prune", *options, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def write_old_session(home, days):
    """Write a session that ended so many days ago, as a process did then."""
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


async def test_old_sessions_of_a_home_are_archived_and_deleted_and_open_ones_stay(home):
    notes = home / "agents" / "notes"
    for place in (home, notes):
        for days in (0, 40, 400):
            write_old_session(place, days)
    rules = ("--archive-after", "30d", "--delete-after", "1y")
    told = prune(*rules, "--dry-run")
    assert (told["archived"], told["deleted"]) == (2, 2)
    assert {session["scope"] for session in told["examples"]} == {"log", "log:notes"}
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


async def test_the_sessions_of_a_database_are_pruned_by_the_command_too(address):
    store = PostgresStore(address, "log")
    header = await write_session(store, title="A title")
    await store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_session SET updated = 0")
    done = dragoman("store", "prune", "--store", address, "--delete-after", "1w", "--dry-run")
    assert "would be deleted: 1" in done.stdout
    assert f"1970-01-01  log  {header.id}" in done.stdout
    assert prune("--store", address, "--delete-after", "1w")["deleted"] == 1
    assert prune("--store", address, "--delete-after", "1w")["deleted"] == 0


async def test_a_bridge_follows_the_setting(address, home):
    store = PostgresStore(address, "journal:other")
    await write_session(store)
    await store.close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_session SET updated = 0")
        with serving(home, "--store", address, DRAGOMAN_STORE_PRUNE="delete-after=1w"):
            wait_until(lambda: connection.execute("SELECT count(*) FROM dragoman_session").fetchall() == [(0,)])


@pytest.mark.parametrize(
    ("options", "words"),
    [((), "no rule of retention is given"), (("--delete-after", "old"), "expected a number and one of m, h, d, w, y")],
)
def test_rules_that_say_nothing_are_refused(options, words):
    done = dragoman("store", "prune", *options)
    assert done.returncode == 2
    assert words in done.stderr
