"""The agents that `dragoman agents install` installed, each in an environment of its own.

    <home>/installed/NAME/receipt.json    what is installed; written last, and replaced whole
    <home>/installed/NAME/env-<random>/   the environment that the receipt names
    <home>/installed/.lock                held while something is installed or removed

The receipt is the commit point. An environment that no receipt names is an installation that was interrupted: nothing
finds it, and the next installation or removal deletes it. A Python environment has its own path in its scripts, so it
is made where it stays, and not moved there.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.client.installed_agents import InstalledAgent, find_installed_agents
from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile

RECEIPT_FILE = "receipt.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


class EnvironmentUnusable(DragomanError):
    """The environment of an agent cannot be made, kept or removed; the message has the reason and the next step."""


class Receipt(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent that is installed."""

    name: str
    environment: str
    """The directory beside the receipt."""
    command: tuple[str, ...]
    source: Literal["npm", "PyPI", "archive"]
    package: str
    """The package with its version, or the address of the archive."""
    digest: str
    """The hash that was shown before it was installed."""
    title: str = ""
    version: str = ""
    description: str = ""
    env: Mapping[str, str] = {}

    def full_command(self) -> tuple[str, ...]:
        """Return the command with the environment variables of the agent's entry in it."""
        variables = [f"{name}={value}" for name, value in self.env.items()]
        return (shutil.which("env") or "/usr/bin/env", *variables, *self.command) if variables else self.command


class NewEnvironment:
    """A directory in which an agent is being installed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / f"env-{secrets.token_hex(4)}"
        self.path.mkdir(mode=0o700)
        self.is_committed = False

    def commit(self, receipt: Receipt) -> None:
        """Make it the agent's environment; raises EnvironmentUnusable."""
        try:
            PrivateFile(self._folder / RECEIPT_FILE).replace(msgspec.json.encode(receipt))
        except OSError as error:
            raise EnvironmentUnusable(f"{self._folder / RECEIPT_FILE} cannot be written: {error.strerror}") from None
        self.is_committed = True


class AgentEnvironments:
    """The environments under one home."""

    def __init__(self, home: Path) -> None:
        self._root = home / "installed"

    def folder(self, name: str) -> Path:
        """Return where the environment of an agent belongs; raises EnvironmentUnusable for what is no name."""
        if not _NAME.fullmatch(name):
            raise EnvironmentUnusable(
                f"{name!r} is no name for a directory; expected letters, digits, - and _, and at most 64 of them"
            )
        return self._root / name

    def has(self, name: str) -> bool:
        """Tell whether an agent is installed by this name."""
        return _NAME.fullmatch(name) is not None and (self._root / name / RECEIPT_FILE).is_file()

    def read(self) -> list[Receipt | InstalledAgent]:
        """Return the receipts; an agent without a command for one that cannot be used."""
        try:
            names = sorted(entry.name for entry in os.scandir(self._root) if entry.is_dir(follow_symlinks=False))
        except OSError:
            return []
        return [self._read(name) for name in names if self.has(name)]

    def _read(self, name: str) -> Receipt | InstalledAgent:
        path = self._root / name / RECEIPT_FILE
        try:
            receipt = msgspec.json.decode(PrivateFile(path).read(), type=Receipt)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            problem = f"{path} cannot be used: {getattr(error, 'strerror', None) or error}"
            return InstalledAgent(name, name, problem=f"{problem}; install it again: dragoman agents install {name}")
        program = receipt.command[0] if receipt.command else ""
        if not os.access(program, os.X_OK):
            problem = f"its program {program} is gone; install it again: dragoman agents install {name}"
            return InstalledAgent(name, receipt.title or name, problem=problem)
        return receipt

    @contextmanager
    def preparing(self, name: str) -> Generator[NewEnvironment]:
        """Give a new environment to install into: what is not committed when this ends is deleted.

        Raises EnvironmentUnusable, also while another process installs or removes something.
        """
        folder = self.folder(name)
        with self._alone():
            self._sweep()
            folder.mkdir(mode=0o700, exist_ok=True)
            environment = NewEnvironment(folder)
            try:
                yield environment
            finally:
                if not environment.is_committed:
                    shutil.rmtree(environment.path, ignore_errors=True)
                self._sweep()

    def remove(self, name: str) -> bool:
        """Delete an agent and its environment; tells whether there was one. Raises EnvironmentUnusable."""
        folder = self.folder(name)
        if not self._root.is_dir():
            return False
        with self._alone():
            was_there = self.has(name)
            (folder / RECEIPT_FILE).unlink(missing_ok=True)
            self._sweep()
        return was_there

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                os.close(lock)
        except BlockingIOError:
            raise EnvironmentUnusable(
                "another dragoman installs or removes an agent at the moment; wait for it, then try again"
            ) from None
        except OSError as error:
            step = "free some space on that disk" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "see its rights"
            raise EnvironmentUnusable(f"{error.filename or self._root}: {error.strerror}; {step}") from None

    def _sweep(self) -> None:
        """Delete every environment that no receipt names, and the folders that are empty then."""
        for folder in self._root.iterdir():
            if folder.is_symlink() or not folder.is_dir():
                continue
            receipt = self._read(folder.name) if self.has(folder.name) else None
            if isinstance(receipt, InstalledAgent):
                continue  # a person may mend the receipt, and then its environment is wanted
            for place in folder.glob("env-*"):
                if receipt is None or place.name != receipt.environment:
                    shutil.rmtree(place, ignore_errors=True)
            if not any(folder.iterdir()):
                folder.rmdir()


def find_agents(home: Path, path: str | None = None) -> list[InstalledAgent]:
    """Return the agents that are installed here, in an environment or on PATH; those that can be started come first."""
    found = {agent.name: agent for agent in find_installed_agents(path)}
    for receipt in AgentEnvironments(home).read():
        agent = _as_agent(receipt)
        if agent.command or not found.get(agent.name, agent).command:
            found[agent.name] = agent
    return sorted(found.values(), key=lambda agent: not agent.command)


def _as_agent(receipt: Receipt | InstalledAgent) -> InstalledAgent:
    if isinstance(receipt, InstalledAgent):
        return receipt
    return InstalledAgent(receipt.name, receipt.title or receipt.name, receipt.full_command())
