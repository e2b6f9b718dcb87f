"""A shell for the commands of one page, with a separate directory, home and, if possible, network.

The network is a namespace, so that no other program uses its ports. Without namespaces, pages that open ports run one
at a time (`one_at_a_time`). Variables and the current directory pass from one command to the next.
"""

import fcntl
import os
import pty
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.waiting import wait_until

PATIENCE_S = 100
_BIN = Path(sys.executable).parent
# The first command of each shell: it restores the variables and the directory of the previous command.
_REMEMBER = "set -a; [ ! -f {0} ] || . {0}; cd \"$(cat {1})\" || exit; trap 'export -p > {0}; pwd > {1}' EXIT\n"
_GO_ON = 'set -a; [ ! -f {0} ] || . {0}; cd "$(cat {1})" || exit; exec '
_NOT_OURS = ("DRAGOMAN_", "OTEL_", "MAKE", "MFLAGS", "PYTEST_", "PYTHON", "XDG_", "COLUMNS")


@cache
def namespace_command():
    """Return the command that creates a network namespace, or nothing if the system cannot."""
    command = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    tried = [*command, "ip", "link", "set", "lo", "up"]
    if not (shutil.which("unshare") and shutil.which("nsenter") and shutil.which("ip")):
        return []
    return command if subprocess.run(tried, capture_output=True, check=False).returncode == 0 else []


@contextmanager
def network():
    """Return the prefix that runs a command in a network namespace."""
    if not namespace_command():
        with one_at_a_time():
            yield []
        return
    inside = [*namespace_command(), "sh", "-c", "ip link set lo up && echo up && exec cat"]
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"up\n"
        users = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        yield ["nsenter", "--target", str(holder.pid), "--net", *users, "--"]


@contextmanager
def one_at_a_time():
    """Hold a lock between the workers of a test run."""
    with Path(tempfile.gettempdir(), f"dragoman-docs-{os.getuid()}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class PageShell:
    """Runs commands in sequence. Long-running ones are started, and stopped when another one needs their place."""

    def __init__(self, directory, into_network):
        self.cwd, self.home, self.bin = (directory / name for name in ("work", "home", "bin"))
        for made in (self.cwd, self.home, self.bin):
            made.mkdir(mode=0o700)
        self._into_network = into_network
        self._memory = [shlex.quote(str(directory / name)) for name in ("variables", "cwd")]
        (directory / "cwd").write_text(f"{self.cwd}\n")
        self._files = directory
        self._environment = self._make_environment()
        self._running = []

    def _make_environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_NOT_OURS)}
        kept = {name: value for name, value in kept.items() if not name.endswith(("_API_KEY", "_BASE_URL"))}
        path = os.pathsep.join(map(str, (self.bin, _BIN, os.environ["PATH"])))
        own = {"HOME": str(self.home), "PATH": path, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
        return {**kept, **own}

    @property
    def current_directory(self):
        """The current directory after the last command."""
        return Path((self._files / "cwd").read_text().strip())

    def set(self, variable, value):
        """Set a variable for later commands."""
        self._environment[variable] = value

    def add_program(self, name, script):
        """Put a program on PATH."""
        program = self.bin / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)

    def run(self, text, *, given="", typed=None):
        """Run a command to its end. `given` is its stdin, and `typed` the user's input in its terminal."""
        command = [*self._into_network, "sh", "-c", _REMEMBER.format(*self._memory) + text]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with (
            self._input(given, typed) as stdin,
            subprocess.Popen(command, stdin=stdin, env=self._environment, start_new_session=True, **streams) as process,
        ):
            try:
                printed, said = process.communicate(timeout=PATIENCE_S)
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                raise
            return subprocess.CompletedProcess(text, process.returncode, printed, said)

    @contextmanager
    def _input(self, given, typed):
        if typed is None:
            with tempfile.TemporaryFile() as file:
                file.write(given.encode())
                file.seek(0)
                yield file
            return
        ours, theirs = pty.openpty()
        try:
            os.write(ours, typed.encode())
            yield theirs
        finally:
            os.close(ours)
            os.close(theirs)

    def start(self, text, is_ready):
        """Start a long-running command, and wait until its output shows that it is ready."""
        number = len(list(self._files.glob("printed-*")))
        printed, said = (self._files / f"{name}-{number}" for name in ("printed", "said"))
        command = [*self._into_network, "sh", "-c", _GO_ON.format(*self._memory) + text]
        with printed.open("wb") as stdout, said.open("wb") as stderr:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=self._environment,
                start_new_session=True,
            )
        self._running.append((text, process, said))
        wait_until(lambda: is_ready(printed.read_text() + said.read_text()) or process.poll() is not None)
        assert process.poll() is None, f"{text} ended with {process.returncode}: {said.read_text()}"
        return printed.read_text() + said.read_text()

    def finish(self):
        """Wait for the end of the last started command."""
        text, process, said = self._running.pop()
        assert process.wait(PATIENCE_S) == 0, f"{text} ended with {process.returncode}: {said.read_text()}"

    def stop(self, begins):
        """Interrupt the commands with this prefix, latest first."""
        stopped = [each for each in reversed(self._running) if each[0].startswith(begins)]
        self._running = [each for each in self._running if each not in stopped]
        codes = [_interrupt(process) for _, process, _ in stopped]
        for (text, _, said), code in zip(stopped, codes, strict=True):
            told = f"{text} ended with {code}: {said.read_text()}"
            assert code in (0, 130, -signal.SIGINT), told
            assert "Traceback" not in said.read_text(), told


def _interrupt(process):
    """Send Ctrl-C to a process and return its exit code. Kill it if it does not exit."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    try:
        return process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()
