"""The commands that start the peers."""

import shutil
import sys
from pathlib import Path

from bench.measure import Missing

ROOT = Path(__file__).parent.parent
INSTALLED = ROOT / ".cache" / "bench"
INSTALLED_PEERS = ROOT / ".cache" / "peers"
PEERS = ROOT / "bench" / "peers"
NODE_MODULES = ROOT / "tests" / "peers" / "node_modules"
TYPESCRIPT_SDK = NODE_MODULES / "@agentclientprotocol" / "sdk"

Command = tuple[str, ...]


def python(name: str) -> Command:
    """Return the command of a Python peer."""
    return (sys.executable, str(PEERS / name))


def dragoman(*arguments: str) -> Command:
    """Return a command of dragoman as a user has it: without the tools of its developers; raises Missing."""
    return (_installed("dragoman"), *arguments)


def dragoman_with_models(*arguments: str) -> Command:
    """Return a command of dragoman with the libraries of the models, which the developers' environment has."""
    return (str(Path(sys.executable).parent / "dragoman"), *arguments)


def peer(name: str, command: str, *arguments: str) -> Command:
    """Return a command of a Python peer that has an environment of its own; raises Missing."""
    environment = INSTALLED_PEERS / name
    found = environment / "bin" / command
    if not found.exists():
        reason = environment / "missing"
        raise Missing(
            reason.read_text().strip() if reason.exists() else f"not installed: make .cache/peers/{name}/.made"
        )
    return (str(found), *arguments)


def on_dragoman(name: str, *arguments: str) -> Command:
    """Return the command of a Python peer that is made of dragoman as a user has it; raises Missing."""
    return (_installed("python"), str(PEERS / name), *arguments)


def node(name: str) -> Command:
    """Return the command of a TypeScript peer; raises Missing."""
    found = shutil.which("node")
    if found is None:
        raise Missing("node is not here")
    if not TYPESCRIPT_SDK.is_dir():
        raise Missing("the TypeScript SDK is not installed: make .venv/.peers")
    return (found, str(PEERS / name))


def _installed(name: str) -> str:
    command = INSTALLED / "bin" / name
    if not command.exists():
        raise Missing("dragoman is not installed by itself: make .cache/bench/.made")
    return str(command)
