"""`dragoman store status`: the processes that use a database, its content, and when each was last seen."""

import json
import os
import socket

import psycopg

from dragoman.store.postgresql import PostgresStore
from dragoman.store.retention import RetentionPolicy
from tests.commands import start_dragoman
from tests.store.making import new_header, update, write_session
from tests.waiting import until


def read_status(address):
    done = start_dragoman("store", "status", "--store", address, "--format", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


async def test_status_names_processes_sessions_and_sizes(address):
    store = PostgresStore(address, "log", lease_s=30, retention=RetentionPolicy(delete_after_s=1e9))
    await write_session(store)
    header = new_header()
    log = await store.create(header)
    log.append(update(b'"%b"' % (b"x" * 50_000), header.id))
    await log.sync()
    await until(lambda: any(node["is_pruning"] for node in read_status(address)["nodes"]))
    status = read_status(address)
    (node,), (scope,), (opened,) = status["nodes"], status["scopes"], status["open"]
    assert (node["host"], node["pid"], node["sessions"]) == (socket.gethostname(), os.getpid(), 1)
    assert (node["is_alive"], node["lease_s"], node["agents"], node["waiting"]) == (True, 30.0, [], 0)
    assert (scope["scope"], scope["sessions"], scope["prompted"], scope["owned"]) == ("log", 2, 1, 1)
    assert 50_000 < scope["size_bytes"] < status["block_bytes"] < status["database_bytes"]
    assert (opened["id"], opened["pid"]) == (header.id, os.getpid())
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("UPDATE dragoman_node SET beat = beat - interval '1 hour'")
    text = start_dragoman("store", "status", "--store", address).stdout
    assert f"process {os.getpid()} on {socket.gethostname()}: 1 session, last seen 3" in text
    assert "gone; other processes can take over its sessions" in text
    assert header.id not in text
    await store.close()
    assert read_status(address)["nodes"] == []
