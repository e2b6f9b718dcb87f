"""The commands that start the peers."""

import shutil
import subprocess
import sys
from pathlib import Path

from bench.measure import MissingError
from bench.size import IS_SMOKE

ROOT = Path(__file__).parent.parent
# A user's environment, without development tools. Figures that are not published use the common environment.
INSTALLED = Path(sys.prefix) if IS_SMOKE else ROOT / ".cache" / "bench"
INSTALLED_PEERS = ROOT / ".cache" / "peers"
PEERS = ROOT / "bench" / "peers"
NODE_MODULES = ROOT / "tests" / "peers" / "node_modules"
TYPESCRIPT_SDK = NODE_MODULES / "@agentclientprotocol" / "sdk"

STDERR = None if IS_SMOKE else subprocess.DEVNULL
"""The stderr of contenders. Only the smoke test reads it, to explain a failure."""

Command = tuple[str, ...]


def python(name: str) -> Command:
    """Return the command of a Python peer."""
    return (sys.executable, str(PEERS / name))


def dragoman(*arguments: str) -> Command:
    """Return a dragoman command in a user's environment, without development tools. Raises MissingError."""
    return (_installed("dragoman"), *arguments)


def dragoman_with_models(*arguments: str) -> Command:
    """Return a dragoman command with the model libraries, which the development environment has."""
    return (str(Path(sys.executable).parent / "dragoman"), *arguments)


def peer(name: str, command: str, *arguments: str) -> Command:
    """Return the command of a Python peer that has a separate environment. Raises MissingError."""
    environment = INSTALLED_PEERS / name
    found = environment / "bin" / command
    if not found.exists():
        reason = environment / "missing"
        raise MissingError(
            reason.read_text().strip() if reason.exists() else f"not installed: make .cache/peers/{name}/.made"
        )
    return (str(found), *arguments)


def on_dragoman(name: str, *arguments: str) -> Command:
    """Return the command of a Python peer that uses dragoman, in a user's environment. Raises MissingError."""
    return (_installed("python"), str(PEERS / name), *arguments)


def node(name: str) -> Command:
    """Return the command of a TypeScript peer. Raises MissingError."""
    found = shutil.which("node")
    if found is None:
        raise MissingError("node is not here")
    if not TYPESCRIPT_SDK.is_dir():
        raise MissingError("the TypeScript SDK is not installed: make .venv/.peers")
    return (found, str(PEERS / name))


def _installed(name: str) -> str:
    command = INSTALLED / "bin" / name
    if not command.exists():
        raise MissingError("dragoman is not installed by itself: make .cache/bench/.made")
    return str(command)
