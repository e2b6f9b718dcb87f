"""Containers of the tests, started, inspected and removed with podman."""

import os
import pty
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

PATIENCE_S = 90
PAUSE_S = 0.25

LINK = re.compile(r"https?://\S+/login\?code=[\w-]+")


def podman(*arguments, check=True):
    """Run podman and return the completed process."""
    done = subprocess.run(["podman", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"podman {arguments[0]}: {done.stderr}"
    return done


def names(*filters):
    """Return the names of all containers, including exited ones."""
    return podman("ps", "--all", "--format", "{{.Names}}", *(f"--filter={each}" for each in filters)).stdout.split()


def logs(name):
    done = podman("logs", name)
    return done.stdout + done.stderr


def wait_until(condition):
    """Wait for a condition that needs a podman call, at longer intervals."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {PATIENCE_S} s"
        time.sleep(PAUSE_S)


def wait_for_link(read):
    """Wait for the link that a bridge prints, and return it."""
    wait_until(lambda: LINK.search(read()))
    return LINK.search(read())[0]


class Running(NamedTuple):
    """A running container with a bridge."""

    name: str
    link: str

    def exec(self, *command, check=True):
        return podman("exec", self.name, *command, check=check).stdout.strip()

    @property
    def token(self):
        return self.exec("cat", "/data/bridge/token")


@contextmanager
def running(*options, image="dragoman", command=()):
    """Run an image in the background."""
    name = podman("run", "--detach", *options, image, *command).stdout.strip()
    try:
        yield Running(name, wait_for_link(lambda: logs(name)))
    finally:
        podman("rm", "--force", "--time=0", name)


class Terminal:
    """A command in a pseudo-terminal, with everything that it shows."""

    def __init__(self, command, cwd):
        self.shown = ""
        ours, theirs = pty.openpty()
        self.process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd, close_fds=True)
        os.close(theirs)
        os.set_blocking(ours, False)
        self._ours = ours

    def read(self):
        while True:
            try:
                piece = os.read(self._ours, 65536)
            except (BlockingIOError, OSError):  # the latter after the command has exited
                return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)", "", self.shown)
            if not piece:
                return self.shown
            self.shown += piece.decode(errors="replace")

    def type(self, text):
        os.write(self._ours, text.encode())

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


@contextmanager
def at_terminal(*command, cwd):
    terminal = Terminal(list(command), cwd)
    try:
        yield terminal
    finally:
        terminal.close()


def own(directory, number):
    """Make a user the owner of a directory, and return the directory."""
    Path(directory).mkdir(exist_ok=True)
    os.chown(directory, number, number)
    return directory
