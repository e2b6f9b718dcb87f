"""The agents that the user installed with `dragoman agents install`, each with its command.

    <home>/installed/NAME/receipt.json    the agent and its command, written last and replaced atomically
    <home>/installed/NAME/env-<random>/   its unpacked archive, if it has one
    <home>/installed/.lock                locked while an agent is installed or removed

The receipt is the commit point. An environment without a receipt comes from an interrupted installation. It is never
used, and the next installation or removal deletes it.
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

from dragoman.catalog.on_path import InstalledAgent, find_installed_agents
from dragoman.errors import DragomanError
from dragoman.files.private_file import PrivateFile

RECEIPT_FILE = "receipt.json"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


Source = Literal["npx", "uvx", "archive"]


class AgentEnvironmentError(DragomanError):
    """An agent cannot be installed or removed. The message has the reason and the next step."""


class Receipt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An installed agent."""

    name: str
    command: tuple[str, ...]
    source: Source
    package: str
    """The package with its version, or the URL of the archive."""
    environment: str = ""
    """The directory next to the receipt that has the unpacked archive."""
    digest: str = ""
    """The hash of the archive, which the user saw before it was unpacked."""
    title: str = ""
    version: str = ""
    description: str = ""
    env: Mapping[str, str] = {}

    def full_command(self) -> tuple[str, ...]:
        """Return the command, which also sets the environment variables of the registry's entry."""
        if not self.env:
            return self.command
        variables = [f"{name}={value}" for name, value in self.env.items()]
        # env(1) treats a program path that contains = as another variable, so a shell starts such a program.
        start = ("/bin/sh", "-c", 'exec "$0" "$@"') if "=" in self.command[0] else ()
        return (shutil.which("env") or "/usr/bin/env", *variables, *start, *self.command)


class NewEnvironment:
    """The directory of an installation in progress."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.path = folder / f"env-{secrets.token_hex(4)}"
        self.path.mkdir(mode=0o700)
        self.is_committed = False

    def commit(self, receipt: Receipt) -> None:
        """Write the receipt, which makes this the agent's environment. Raises AgentEnvironmentError."""
        try:
            PrivateFile(self._folder / RECEIPT_FILE).replace(msgspec.json.encode(receipt))
        except OSError as error:
            raise AgentEnvironmentError(f"{self._folder / RECEIPT_FILE} cannot be written: {error.strerror}") from None
        self.is_committed = True


class AgentEnvironments:
    """The installed agents of one home directory."""

    def __init__(self, home: Path) -> None:
        self._root = home / "installed"

    def folder(self, name: str) -> Path:
        """Return the directory for an agent's environments. Raises AgentEnvironmentError for an invalid name."""
        if not _NAME.fullmatch(name):
            raise AgentEnvironmentError(
                f"{name!r} is not a valid directory name; expected letters, digits, - and _, and at most 64 of them"
            )
        return self._root / name

    def has(self, name: str) -> bool:
        """Return whether an agent of this name is installed."""
        return _NAME.fullmatch(name) is not None and (self._root / name / RECEIPT_FILE).is_file()

    def read(self) -> list[Receipt | InstalledAgent]:
        """Return the receipts. For an unusable one, return an agent without a command."""
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
        if not program or shutil.which(program) is None:
            problem = f"there is no program {program}; install it again: dragoman agents install {name}"
            return InstalledAgent(name, receipt.title or name, problem=problem)
        return receipt

    @contextmanager
    def preparing(self, name: str) -> Generator[NewEnvironment]:
        """Yield a new environment for an installation. If it is not committed in the block, it is deleted.

        Raises AgentEnvironmentError on failure, and while another process installs or removes an agent.
        """
        folder = self.folder(name)
        with self._locked():
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
        """Delete an agent and its environment. Return whether it was installed. Raises AgentEnvironmentError."""
        folder = self.folder(name)
        if not self._root.is_dir():
            return False
        with self._locked():
            was_there = self.has(name)
            (folder / RECEIPT_FILE).unlink(missing_ok=True)
            self._sweep()
        return was_there

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Hold the lock of this home, and translate every OSError. Raises AgentEnvironmentError."""
        try:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock = os.open(self._root / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                yield
            finally:
                os.close(lock)
        except BlockingIOError:
            raise AgentEnvironmentError(
                "another dragoman is installing or removing an agent; wait until it has finished, then try again"
            ) from None
        except OSError as error:
            step = (
                "free some space on that disk"
                if error.errno in (errno.ENOSPC, errno.EDQUOT)
                else "check its permissions"
            )
            raise AgentEnvironmentError(f"{error.filename or self._root}: {error.strerror}; {step}") from None

    def _sweep(self) -> None:
        """Delete every environment without a receipt, and the folders that become empty."""
        for folder in self._root.iterdir():
            if folder.is_symlink() or not folder.is_dir():
                continue
            receipt = self._read(folder.name) if self.has(folder.name) else None
            if isinstance(receipt, InstalledAgent):
                continue  # the user may repair the receipt and then needs its environment
            for environment in folder.glob("env-*"):
                if receipt is None or environment.name != receipt.environment:
                    shutil.rmtree(environment, ignore_errors=True)
            if not any(folder.iterdir()):
                folder.rmdir()


def find_agents(home: Path, path: str | None = None) -> list[InstalledAgent]:
    """Return the agents on this machine, installed by dragoman or on PATH. Agents that can be started come first."""
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
