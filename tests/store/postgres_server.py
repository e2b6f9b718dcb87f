"""A PostgreSQL server for tests. Each worker has one server, and each test that needs one has a database.

The installed programs are used, or else the programs that `scripts/postgresql` has unpacked. PostgreSQL refuses to run
as root, so the server runs as another user. It does not sync, because no test cuts the power.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg

from tests.ports import free_port

_QUIET = ("-c", "autovacuum=off")  # its processes would disturb tests that count the processes of an agent
_FAST = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=32MB", "-c", "max_connections=200")
UNPACKED = Path(__file__).parents[2] / ".cache" / "postgresql" / "bin"
_PR_SET_PDEATHSIG = 1
_USERS = ("postgres", "nobody", "daemon")


def find_programs():
    """Return the directory of the newest PostgreSQL on this machine, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else _parent(find_program("postgres"))


def find_program(name):
    """Return the path of an installed program, or of the unpacked program, or None."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None and _is_for_all(UNPACKED / name):
        found = shutil.which(name, path=str(UNPACKED))
    return found and Path(found)


def _parent(path):
    return path and path.parent


def _is_for_all(path):
    """Return whether the user that runs servers can access a file. As root, we run servers as another user."""
    return os.geteuid() != 0 or all(not parent.exists() or parent.stat().st_mode & 1 for parent in path.parents)


def _user():
    """Return the user that runs servers, or None for the current user if it is not root."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL refuses to run as root, and no other user was found")


def _end_with_us():
    """Make the system end the server when this process is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def begin(command, directory, output):
    """Start a server in its directory, as a user other than root."""
    user = _user()
    who = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    return subprocess.Popen(
        list(map(str, command)),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=directory,
        preexec_fn=_end_with_us,
        **who,
    )


def make_directory(name):
    """Make a directory for a server. Only the current user can enter pytest's folder, so it is elsewhere."""
    directory = Path(tempfile.mkdtemp(prefix=f"dragoman-{name}-"))
    change_owner(directory)
    return directory


def change_owner(path):
    """Change the owner of a file to the user that runs servers."""
    user = _user()
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


class PostgresServer:
    """A server with its own data directory."""

    def __init__(self, programs: Path, *settings: str) -> None:
        """Create the server. `settings` are lines of postgresql.conf, such as `ssl=on`."""
        self.port = free_port()
        self.programs = programs
        self._settings = settings
        self._databases = 0
        self.with_tables: str | None = None
        self._process = None
        self.directory = make_directory("postgres")
        self._output = (self.directory / "output").open("wb")
        initdb = (
            "initdb",
            "-D",
            "data",
            "-U",
            "tester",
            "-A",
            "trust",
            "-N",
            "--no-instructions",
            "--locale=C",
            "-E",
            "UTF8",
        )
        if self._begin(*initdb).wait() != 0:
            raise RuntimeError(f"initdb failed: {(self.directory / 'output').read_text()}")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        where = (
            "-p",
            str(self.port),
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            f"unix_socket_directories={self.directory}",
        )
        settings = [part for setting in self._settings for part in ("-c", setting)]
        self._process = self._begin("postgres", "-D", "data", *where, *_FAST, *_QUIET, *settings)
        while True:
            try:
                psycopg.connect(self.address("postgres")).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None:
                    raise RuntimeError((self.directory / "output").read_text()) from None
                time.sleep(0.02)
            else:
                return

    @property
    def pid(self) -> int:
        """The id of its main process."""
        return self._process.pid

    def stop(self) -> None:
        """Stop the server without a clean shutdown, like a crash."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def remove(self) -> None:
        """Stop the server and delete its directory."""
        self.stop()
        self._output.close()
        shutil.rmtree(self.directory)

    def pause(self) -> None:
        """Suspend the server, like a machine that hangs."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue after `pause`."""
        self._signal_all(signal.SIGCONT)

    def open_to(self, network: str) -> None:
        """Restart the server so that other machines of a test network can connect."""
        with (self.directory / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")
        self._settings = (*self._settings, "listen_addresses=*")
        self.stop()
        self.start()

    def new_database(self, options: str = "") -> str:
        """Make an empty database, with options of CREATE DATABASE, and return its address."""
        self._databases += 1
        name = f"test{self._databases}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return self.address(name)

    def drop_database(self, address: str) -> None:
        """Delete a database, and end its connections."""
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {address.rpartition('/')[2]} WITH (FORCE)")

    def address(self, database: str) -> str:
        """Return the address of a database on this server."""
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}"

    def _begin(self, program, *arguments):
        return begin([self.programs / program, *arguments], self.directory, self._output)

    def _signal_all(self, number):
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in [self._process.pid, *map(int, children)]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
