"""Containers of the tests: started with podman, looked at, and removed."""

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
    """Run podman, and return the command with its output."""
    done = subprocess.run(["podman", *map(str, arguments)], capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"podman {arguments[0]}: {done.stderr}"
    return done


def names(*filters):
    """Return the names of the containers that there are, also of those that have ended."""
    return podman("ps", "--all", "--format", "{{.Names}}", *(f"--filter={each}" for each in filters)).stdout.split()


def logs(name):
    done = podman("logs", name)
    return done.stdout + done.stderr


def wait_until(condition):
    """Wait for a condition that podman has to be asked for, which costs more than to look."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"the condition does not hold after {PATIENCE_S} s"
        time.sleep(PAUSE_S)


def wait_for_link(read):
    """Return the link that a bridge has printed, once it has."""
    wait_until(lambda: LINK.search(read()))
    return LINK.search(read())[0]


class Running(NamedTuple):
    """A container with a bridge in it."""

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
    """A command at a terminal of its own, as a person has it, with all that it shows."""

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
            except (BlockingIOError, OSError):  # the latter when the command has ended
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
    """Give a directory to a user, and return it."""
    Path(directory).mkdir(exist_ok=True)
    os.chown(directory, number, number)
    return directory
