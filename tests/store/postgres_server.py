"""A PostgreSQL of the tests' own: one server for a worker, one database for each test that asks.

The programs are those of the machine, else those that `scripts/postgresql` unpacked. The server does not run as root,
which it refuses, and promises nothing about power cuts, which no test makes.
"""

import ctypes
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psycopg

_QUIET = ("-c", "autovacuum=off")  # whose processes would come and go while tests count those of an agent
_FAST = ("-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=32MB", "-c", "max_connections=200")
UNPACKED = Path(__file__).parents[2] / ".cache" / "postgresql" / "bin"
_PR_SET_PDEATHSIG = 1
_USERS = ("postgres", "nobody", "daemon")


def find_programs():
    """Give the directory of the newest PostgreSQL on this machine; None without one."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else _parent(find_program("postgres"))


def find_program(name):
    """Give a program of this machine, else the one that was unpacked for the tests; None without one."""
    found = shutil.which(name) or shutil.which(name, path="/usr/sbin")
    if found is None and _is_for_all(UNPACKED / name):
        found = shutil.which(name, path=str(UNPACKED))
    return found and Path(found)


def _parent(path):
    return path and path.parent


def _is_for_all(path):
    """Whether the user that servers run as, who is another one when we are root, comes to a file."""
    return os.geteuid() != 0 or all(not parent.exists() or parent.stat().st_mode & 1 for parent in path.parents)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _user():
    """Give the user that the server runs as: none of these when we are not root."""
    if os.geteuid() != 0:
        return None
    for name in _USERS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError("PostgreSQL refuses to run as root, and there is no other user")


def _end_with_us():
    """Have the system end the server when this process is killed."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT, 0, 0, 0)


def begin(command, directory, output):
    """Start a server that refuses to run as root, in its directory."""
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
    """Make a directory for such a server: not in pytest's own folder, which only its user may enter."""
    directory = Path(tempfile.mkdtemp(prefix=f"dragoman-{name}-"))
    give_to_server(directory)
    return directory


def give_to_server(path):
    """Have a file belong to the user that servers run as."""
    user = _user()
    if user is not None:
        os.chown(path, user.pw_uid, user.pw_gid)


class PostgresServer:
    """A server in a directory of its own."""

    def __init__(self, programs: Path, *settings: str) -> None:
        """`settings` are those of postgresql.conf, such as `ssl=on`."""
        self.port = free_port()
        self.programs = programs
        self._settings = settings
        self._databases = 0
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
        """Start it, and wait until it answers."""
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
        """Its main process."""
        return self._process.pid

    def stop(self) -> None:
        """Stop it as a crash would."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait()

    def remove(self) -> None:
        """Stop it for good."""
        self.stop()
        self._output.close()
        shutil.rmtree(self.directory)

    def pause(self) -> None:
        """Let it answer nobody, as a machine that hangs: what it has begun is not done."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        """End a pause."""
        self._signal_all(signal.SIGCONT)

    def open_to(self, network: str) -> None:
        """Start it again, for other machines of a network too, which is one of the tests' own."""
        with (self.directory / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {network} trust\n")
        self._settings = (*self._settings, "listen_addresses=*")
        self.stop()
        self.start()

    def new_database(self, options: str = "") -> str:
        """Make an empty database, with the options of CREATE DATABASE, and give its address."""
        self._databases += 1
        name = f"test{self._databases}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} {options}")
        return self.address(name)

    def address(self, database: str) -> str:
        """Name a database of this server."""
        return f"postgresql://tester@127.0.0.1:{self.port}/{database}"

    def _begin(self, program, *arguments):
        return begin([self.programs / program, *arguments], self.directory, self._output)

    def _signal_all(self, number):
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text().split()
        for pid in [self._process.pid, *map(int, children)]:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
