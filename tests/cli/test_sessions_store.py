"""`dragoman sessions delete` with the sessions and the bridges' journals in a database."""

import json
import os
import re
import signal
import socket
import uuid
from contextlib import contextmanager

import msgspec
import psycopg
import pytest

from dragoman.bridge.delivery.file_histories import journal_name
from dragoman.bridge.sessions import SessionLabel
from dragoman.cli.sessions.journals import open_journals
from dragoman.store.postgresql import Database, PostgresStore
from dragoman.store.postgresql.label_table import LabelTable
from tests.bridge.guard.serving import serving
from tests.commands import dragoman, start_dragoman
from tests.store.making import new_header, write_session
from tests.waiting import wait_until


@pytest.fixture
def connection(address):
    with psycopg.connect(address, autocommit=True) as connected:
        yield connected


def delete(address, *words, start=dragoman):
    return start("sessions", "delete", *words, "--yes", "--store", address)


def talk(served, tmp_path, *words):
    """Run a turn with a bridge's agent, and return the session."""
    env = {**os.environ, "DRAGOMAN_TOKEN": served.token}
    done = dragoman("run", *words, "--url", served.acp, "--format", "json", cwd=tmp_path, env=env)
    return json.loads(done.stdout)["session_id"]


def rows_of(connection):
    """Return the scopes and ids of all sessions and labels in the database."""
    rows = connection.execute("SELECT scope, id FROM dragoman_session UNION SELECT scope, id FROM dragoman_label")
    return sorted(rows.fetchall())


@contextmanager
def node(home, address, name="dragoman"):
    """Run a bridge with its own home."""
    home.mkdir(exist_ok=True)
    with serving(home, "--store", address, "--agent-name", name, agent=()) as served:
        yield served


@pytest.mark.extended
def test_sessions_are_deleted_with_their_journals_without_a_bridge(address, connection, home, tmp_path):
    with node(home, address) as served:
        session_id, other_id = talk(served, tmp_path, "hello"), talk(served, tmp_path, "hello again")
        assert served.stop() == 0
    done = delete(address, session_id[:8])
    assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal on the bridge.\n")
    assert {found for _, found in rows_of(connection)} == {other_id}
    connection.execute("DELETE FROM dragoman_session WHERE scope = 'log'")  # the agent has lost it
    env = {**os.environ, "DRAGOMAN_STORE": address}
    done = dragoman("sessions", "delete", "--all", "--yes", env=env)
    assert (done.returncode, done.stdout) == (0, f"Deleted hello again ({other_id}), and its journal on the bridge.\n")
    assert rows_of(connection) == []
    assert connection.execute("SELECT count(*) FROM dragoman_block").fetchall() == [(0,)]
    assert connection.execute("SELECT count(*) FROM dragoman_node").fetchall() == [(0,)]


def test_session_open_at_this_homes_bridge_is_deleted_by_it(address, connection, home, tmp_path):
    with node(home, address) as served:
        session_id = talk(served, tmp_path, "hello")
        done = delete(address, session_id)
        assert (done.returncode, done.stdout) == (0, f"Deleted hello ({session_id}), and its journal on the bridge.\n")
        assert rows_of(connection) == []


@pytest.mark.extended
def test_session_open_at_another_bridge_is_refused_with_the_way_to_delete(address, connection, tmp_path):
    with node(tmp_path / "elsewhere", address) as served:
        session_id = talk(served, tmp_path, "hello")
        before = rows_of(connection)
        refused = delete(address, session_id)
        assert refused.returncode == 1
        where = f"session {session_id} is open at the bridge of process {served.process.pid} on {socket.gethostname()}"
        assert where in refused.stderr
        assert f"`dragoman sessions delete {session_id} --url https://ADDRESS/acp`" in refused.stderr
        assert rows_of(connection) == before
        env = {**os.environ, "DRAGOMAN_TOKEN": served.token}
        done = dragoman("sessions", "delete", session_id, "--yes", "--url", served.acp, env=env)
        assert done.returncode == 0, done.stderr
        wait_until(lambda: rows_of(connection) == [])


@pytest.mark.extended
def test_session_of_a_killed_bridge_is_deleted_after_its_lease(address, connection, tmp_path):
    home = tmp_path / "elsewhere"
    home.mkdir()
    with serving(home, "--store", address, agent=(), DRAGOMAN_STORE_LEASE="2") as served:
        session_id = talk(served, tmp_path, "hello")
        served.stop(signal.SIGKILL)
    wait_until(lambda: delete(address, session_id).returncode == 0)
    assert rows_of(connection) == []


@pytest.mark.extended
def test_bridges_that_list_a_session_learn_of_its_deletion(address, connection, tmp_path):
    with node(tmp_path / "first", address) as served:
        session_id = talk(served, tmp_path, "hello")
        assert served.stop() == 0
    with node(tmp_path / "second", address) as served:
        env = {**os.environ, "DRAGOMAN_TOKEN": served.token}

        def listed():
            done = dragoman("sessions", "list", "--format", "json", "--url", served.acp, env=env)
            return [info["session_id"] for info in json.loads(done.stdout)]

        assert listed() == [session_id]
        done = delete(address, session_id)
        assert done.returncode == 0, done.stderr
        assert rows_of(connection) == []
        wait_until(lambda: listed() == [])


@pytest.mark.extended
async def test_journal_stays_if_the_agent_does_not_delete_its_session(address, connection, tmp_path):
    header = new_header()
    journals, logs = PostgresStore(address, "journal:dragoman"), PostgresStore(address, "log", lease_s=600)
    await write_session(journals, header)
    await journals.close()
    await write_session(logs, header)
    held = await logs.open(header.id)  # as an editor's agent has it
    before = rows_of(connection)
    refused = delete(address, "--all", start=start_dragoman)
    assert refused.returncode == 1
    assert f"dragoman sessions delete {header.id} --url http://127.0.0.1:8421/acp" in refused.stderr
    assert rows_of(connection) == before
    await held.close()
    await logs.close()
    assert delete(address, header.id, start=start_dragoman).returncode == 0
    assert rows_of(connection) == []


def family():
    """Return the ids and labels of a session, its subagent and that one's subagent."""
    parent, child, grandchild = (str(uuid.uuid4()) for _ in range(3))
    return {
        parent: SessionLabel(title="mine"),
        child: SessionLabel(parent=parent),
        grandchild: SessionLabel(parent=child),
    }


async def test_subagent_journals_are_deleted_with_a_session_in_a_database(address, connection, home):
    labels = family()
    store = PostgresStore(address, "journal:dragoman")
    for session_id in labels:
        await write_session(store, msgspec.structs.replace(new_header(), id=session_id))
    await store.close()
    database = Database(address)
    for session_id, label in labels.items():
        await LabelTable(database, "journal:dragoman").replace(session_id, None, msgspec.json.encode(label))
    await database.close()
    await delete_journals(home, address, next(iter(labels)))
    assert rows_of(connection) == []


async def test_subagent_journals_are_deleted_with_a_session_in_files(home):
    labels = family()
    directory = home / "bridge" / "dragoman"
    directory.mkdir(parents=True)
    (directory / "labels.json").write_bytes(msgspec.json.encode(labels))
    for session_id in labels:
        (directory / journal_name(session_id)).touch()
    await delete_journals(home, None, next(iter(labels)))
    assert [path.name for path in directory.iterdir()] == ["labels.json"]
    assert (directory / "labels.json").read_bytes() == b"{}"


async def delete_journals(home, store, session_id):
    async with open_journals(home, store, "dragoman", is_own=True) as journals:
        await journals.hold(session_id)
        await journals.delete(session_id)


def test_store_option_is_refused_for_a_running_agent():
    done = dragoman("sessions", "--store", "postgresql://db/x", "--url", "http://127.0.0.1:1/acp")
    assert done.returncode == 2
    assert re.search("--store is for an agent we start.* use only one of them", done.stderr)
