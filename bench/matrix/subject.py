"""A subject: an agent or a client, its origin, and how it is started and prompted."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bench import commands
from bench.commands import Command
from bench.measure import MissingError
from dragoman.check.conversation import Side
from dragoman.check.driver import ScriptTurn
from dragoman.check.driver.options import HELLO
from dragoman.check.rule import Version

EXAMPLES = commands.INSTALLED_PEERS / "python-sdk-examples"
NODE_PEERS = commands.INSTALLED_PEERS / "node"
TEST_PEERS = commands.ROOT / "tests" / "peers"
INSTALL = "make matrix installs it"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One column of the matrix."""

    name: str
    about: str
    """A description for the reader: the subject and its setup."""
    version: Callable[[], str]
    """Returns the version. Raises MissingError if the subject is not installed."""
    command: Callable[[], Command]
    """Returns the command. Raises MissingError if the subject is not installed."""
    role: Side = "agent"
    turns: tuple[ScriptTurn, ...] = (ScriptTurn(HELLO),)
    prompt: bool = True
    is_ours: bool = False
    served: bool = False
    """Whether the subject runs behind our bridge and is reached by its address."""
    env: Mapping[str, str] = {}
    point: Callable[[str, Path], Mapping[str, str]] | None = None
    """Configures a model provider: receives its address and the home, writes settings, and returns the environment."""
    protocols: tuple[Version, ...] | None = None
    """The versions to check. None means version 1, and version 2 if the subject supports it."""


def installed_version(environment: str, package: str) -> Callable[[], str]:
    """Return a function that finds the version of a package in a peer's own environment."""
    code = f"import importlib.metadata as found; print(found.version({package!r}))"

    def find() -> str:
        return _output((*commands.peer(environment, "python"), "-c", code))

    return find


def node_version(package: str, modules: Path = NODE_PEERS / "node_modules") -> Callable[[], str]:
    """Return a function that finds the version of a package that npm has installed."""

    def find() -> str:
        described = modules / package / "package.json"
        if not described.exists():
            raise MissingError(f"{package} is not installed: {INSTALL}")
        return str(json.loads(described.read_text())["version"])

    return find


def node_command(script: Path, *arguments: str) -> Callable[[], Command]:
    """Return a function that finds the command of a Node script."""

    def find() -> Command:
        node = commands.node(str(script))[0]
        if not script.exists():
            raise MissingError(f"{script.name} is not installed: {INSTALL}")
        return (node, str(script), *arguments)

    return find


def example_command(name: str) -> Callable[[], Command]:
    """Return a function that finds the command of a Python SDK example, run with the SDK of our tests."""

    def find() -> Command:
        if not (EXAMPLES / name).exists():
            raise MissingError(f"the examples of the Python SDK are not here: {INSTALL}")
        return (commands.python(name)[0], str(EXAMPLES / name))

    return find


def _output(command: Command) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
