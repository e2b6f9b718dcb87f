"""A subject: an agent or a client, its origin, and how it is steered."""

import json
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from bench import commands
from bench.commands import Command
from bench.measure import Missing
from dragoman.check.driver import ScriptTurn
from dragoman.check.driver.options import HELLO
from dragoman.check.rule import Role, Version

EXAMPLES = commands.INSTALLED_PEERS / "python-sdk-examples"
NODE_PEERS = commands.INSTALLED_PEERS / "node"
TEST_PEERS = commands.ROOT / "tests" / "peers"
INSTALL = "make matrix installs it"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """One column of the matrix."""

    name: str
    about: str
    """A description for the reader: the subject, and how it was steered."""
    version: Callable[[], str]
    """Raises Missing when it is not installed."""
    command: Callable[[], Command]
    """Raises Missing when it is not installed."""
    role: Role = "agent"
    turns: tuple[ScriptTurn, ...] = (ScriptTurn(HELLO),)
    prompt: bool = True
    is_ours: bool = False
    served: bool = False
    """Whether it is put behind our bridge and reached by its address."""
    env: Mapping[str, str] = {}
    point: Callable[[str, Path], Mapping[str, str]] | None = None
    """Points it at a model provider: takes its address and the home, writes settings there, returns the environment."""
    protocols: tuple[Version, ...] | None = None
    """The versions to judge; None for version 1, and version 2 too where it speaks that."""


def installed_version(environment: str, package: str) -> Callable[[], str]:
    """Tell the version of a package in a peer's own environment."""
    code = f"import importlib.metadata as found; print(found.version({package!r}))"

    def find() -> str:
        return _output((*commands.peer(environment, "python"), "-c", code))

    return find


def node_version(package: str, modules: Path = NODE_PEERS / "node_modules") -> Callable[[], str]:
    """Tell the version of a package that npm has installed."""

    def find() -> str:
        described = modules / package / "package.json"
        if not described.exists():
            raise Missing(f"{package} is not installed: {INSTALL}")
        return str(json.loads(described.read_text())["version"])

    return find


def node_command(script: Path, *arguments: str) -> Callable[[], Command]:
    """Tell the command of a script for Node."""

    def find() -> Command:
        node = commands.node(str(script))[0]
        if not script.exists():
            raise Missing(f"{script.name} is not installed: {INSTALL}")
        return (node, str(script), *arguments)

    return find


def example_command(name: str) -> Callable[[], Command]:
    """Tell the command of an example of the Python SDK, which is run with the SDK that our tests have."""

    def find() -> Command:
        if not (EXAMPLES / name).exists():
            raise Missing(f"the examples of the Python SDK are not here: {INSTALL}")
        return (commands.python(name)[0], str(EXAMPLES / name))

    return find


def _output(command: Command) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
