"""A PgBouncer for tests, in transaction mode. It sends each statement of a client to any free connection."""

import shutil
import time

import psycopg

from tests.ports import free_port
from tests.store.postgres_server import begin, make_directory

POOL_SIZE = 3
"""Connections to the database. A store uses more, so they are really shared."""

_SETTINGS = """
[databases]
* = host=127.0.0.1 port={server_port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = users
pool_mode = transaction
default_pool_size = {pool_size}
admin_users = tester
"""


class PgBouncer:
    """A pooler in front of a server."""

    def __init__(self, program, server):
        self.port = free_port()
        self._server = server
        self._directory = make_directory("pgbouncer")
        settings = self._directory / "pgbouncer.ini"
        settings.write_text(_SETTINGS.format(server_port=server.port, port=self.port, pool_size=POOL_SIZE))
        (self._directory / "users").write_text('"tester" ""\n')
        self._output = (self._directory / "output").open("wb")
        self._process = begin([program, settings], self._directory, self._output)
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PgBouncer does not answer: {(self._directory / 'output').read_text()}")
            time.sleep(0.02)

    def behind(self, address):
        """Return the address of a database through the pooler."""
        return address.replace(f":{self._server.port}/", f":{self.port}/")

    def backends(self, database):
        """Count the connections to a database."""
        with psycopg.connect(self._address("pgbouncer"), autocommit=True) as connection:
            rows = connection.execute("SHOW SERVERS", prepare=False).fetchall()
        return sum(database in row for row in rows)

    def remove(self):
        self._process.kill()
        self._process.wait()
        self._output.close()
        shutil.rmtree(self._directory)

    def _address(self, database):
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}"

    def _answers(self):
        try:
            psycopg.connect(self._address("postgres")).close()
        except psycopg.OperationalError:
            return False
        return True
