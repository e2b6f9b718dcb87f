"""Certificates and passwords for a database, configured through libpq. The password appears nowhere."""

import os
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from dragoman.client import connect
from dragoman.store.postgresql import Database
from dragoman.store.postgresql.errors import DatabaseUnavailableError
from tests.commands import DRAGOMAN, start_dragoman
from tests.store.certificates import Authority
from tests.store.postgres_server import PostgresServer, change_owner, find_programs

PASSWORD = "Sesame-7c1e"
ACCESS = """
host    all tester 127.0.0.1/32 trust
hostssl all member 127.0.0.1/32 scram-sha-256 clientcert=verify-full
"""


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def secured(authority):
    """A server that accepts `member` only over TLS, with a certificate and a password."""
    programs = find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not on this machine, or cannot be run here: see scripts/postgresql")
    server = PostgresServer(programs, "ssl=on", "ssl_ca_file=ca.crt")
    files = {"server.crt": authority.issue("server", "localhost")[0], "ca.crt": authority.certificate}
    files["server.key"] = files["server.crt"].with_suffix(".key")
    for name, source in files.items():
        path = server.directory / "data" / name
        path.touch(0o600)
        path.write_bytes(source.read_bytes())
        change_owner(path)
    (server.directory / "data" / "pg_hba.conf").write_text(ACCESS)
    server.start()
    with psycopg.connect(server.address("postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE ROLE member LOGIN PASSWORD '{PASSWORD}'")
        connection.execute("CREATE DATABASE shared OWNER member")
    yield server
    server.remove()


@pytest.fixture
def member(secured, authority):
    """Return the address of the database for `member`, with changed parts."""
    certificate, key = authority.issue("member")
    parts = {"sslmode": "verify-full", "sslrootcert": authority.certificate, "sslcert": certificate, "sslkey": key}

    def make(*, host="localhost", secret="", **changes):
        given = "&".join(f"{name}={value}" for name, value in {**parts, **changes}.items() if value is not None)
        return f"postgresql://member{secret}@{host}:{secured.port}/shared?{given}"

    return make


def command_lines():
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            yield (process / "cmdline").read_bytes()


@pytest.mark.extended
@pytest.mark.parametrize("means", ["variable", "file", "address"])
async def test_a_password_and_certificate_work_and_stay_secret(member, means, tmp_path, monkeypatch, secured):
    shown = []
    monkeypatch.setenv("DRAGOMAN_STORE", member(secret=f":{PASSWORD}" if means == "address" else ""))
    monkeypatch.setenv("DRAGOMAN_LOG", "debug")
    if means == "variable":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    elif means == "file":
        (tmp_path / "pgpass").touch(0o600)
        (tmp_path / "pgpass").write_text(f"*:*:*:member:{PASSWORD}\n")
        monkeypatch.setenv("PGPASSFILE", str(tmp_path / "pgpass"))
    for arguments in (("init",), ("status",), ("status", "--format", "json")):
        done = start_dragoman("store", *arguments)
        assert done.returncode == 0, done.stderr
        shown += [done.stdout, done.stderr]
    async with connect([*DRAGOMAN, "agent"], on_stderr=shown.append) as agent:
        session = await agent.new_session(tmp_path)
        assert await session.ask("hello")
        assert not any(PASSWORD.encode() in line for line in command_lines())
    with psycopg.connect(secured.address("shared")) as connection:
        rows = connection.execute("SELECT encode(data, 'escape') FROM dragoman_block").fetchall()
        rows += connection.execute("SELECT n::text FROM dragoman_node n").fetchall()
    assert rows
    kept = b"".join(path.read_bytes() for path in Path(os.environ["DRAGOMAN_HOME"]).rglob("*") if path.is_file())
    assert PASSWORD not in f"{shown} {rows} {kept!r}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"secret": ":Sesame-wrong"}, "password authentication failed"),
        ({"sslcert": None, "sslkey": None}, "certificate"),
        ({"sslrootcert": "another"}, "certificate verify failed"),
        ({"host": "127.0.0.1"}, 'does not match host name "127.0.0.1"'),
        ({"sslmode": "disable", "sslrootcert": None}, "no encryption"),
    ],
)
async def test_a_refused_login_names_the_reason_without_the_password(
    member, changes, words, tmp_path, monkeypatch, authority
):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("HOME", str(tmp_path))  # libpq searches certificates there
    if changes.get("sslrootcert") == "another":
        changes = {"sslrootcert": Authority(tmp_path, "stranger").certificate}
    database = Database(member(**changes))
    with pytest.raises(DatabaseUnavailableError) as caught:
        await database.fetch_once("SELECT 1")
    assert words in str(caught.value)
    assert f"shared at {changes.get('host', 'localhost')}" in str(caught.value)
    assert "Sesame" not in str(caught.value)
