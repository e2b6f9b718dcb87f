"""The agents that are known by name: in the person's own file, installed, on PATH, or in the ACP registry.

Two are files in `$DRAGOMAN_HOME`:

* `agents.json`: `{"agents": {"NAME": {"command": "…", "args": […], "env": {…}, "description": "…"}}}`. The
  `agent_servers` of Zed's settings have the same form and may be put there as they are.
* `registry.json`: the registry's own `registry.json`, `{"version": "1.0.0", "agents": [{"id": …, "distribution": …}]}`.

A name in `agents.json` counts before one that `dragoman agents install` installed, that before a program on PATH, and
that before the same name in the registry.
"""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dragoman.client.agent_environments import AgentEnvironments, Receipt
from dragoman.client.installed_agents import find_installed_agents
from dragoman.errors import DragomanError

T = TypeVar("T")

OWN_FILE = "agents.json"
REGISTRY_FILE = "registry.json"

MAX_FILE_BYTES = 16 * 1024 * 1024
"""The registry has some hundred kilobytes; a file larger than this is something else."""

_SYSTEMS = {"darwin": "darwin", "linux": "linux", "win32": "windows"}
_MACHINES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64"}


class BadAgentsFile(DragomanError):
    """A file of agents cannot be used."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}; mend that file, or move it away")


class CannotStart(DragomanError):
    """An agent is known, but there is no way to start it here."""


class NamedAgent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent that can be called by its name."""

    name: str
    source: Literal["agents.json", "installed", "registry.json", "PATH"]
    command: tuple[str, ...] = ()
    """Empty for an agent that cannot be started here; `problem` says why."""
    env: Mapping[str, str] = {}
    description: str = ""
    version: str = ""
    problem: str = ""

    def require_command(self) -> list[str]:
        """Return its command; raises CannotStart."""
        if not self.command:
            raise CannotStart(f"the agent {self.name} cannot be started: {self.problem}")
        return list(self.command)


class _Entry(msgspec.Struct):
    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    description: str = ""


class _OwnFile(msgspec.Struct):
    agents: dict[str, _Entry] = {}
    agent_servers: dict[str, dict[str, Any]] = {}
    """Of Zed, where an entry may also be settings of an agent that Zed brings itself: those are passed over."""


class Package(msgspec.Struct):
    """A package of npm or PyPI."""

    package: str
    cmd: str = ""
    """The command of the package, if it is not the one that its runner would take."""
    args: list[str] = []
    env: dict[str, str] = {}


class Binary(msgspec.Struct):
    """A program in an archive, for one platform."""

    archive: str
    cmd: str
    sha256: str = ""
    args: list[str] = []
    env: dict[str, str] = {}


class Distribution(msgspec.Struct):
    """The ways to get an agent."""

    npx: Package | None = None
    uvx: Package | None = None
    binary: dict[str, Binary] = {}


class Manifest(msgspec.Struct):
    """An entry of the registry."""

    id: str
    distribution: Distribution
    name: str = ""
    version: str = ""
    description: str = ""


class _Registry(msgspec.Struct):
    agents: list[Manifest]


def known_agents(home: Path) -> dict[str, NamedAgent]:
    """Return every agent that is known by name; raises BadAgentsFile."""
    found = {agent.name: agent for agent in map(_read_manifest, read_registry(home / REGISTRY_FILE))}
    for agent in (*_on_path(), *_installed(home)):
        if agent.command or agent.name not in found:
            found[agent.name] = agent
    found |= {agent.name: agent for agent in _read_own(home / OWN_FILE)}
    return dict(sorted(found.items()))


def _on_path() -> Iterator[NamedAgent]:
    for agent in find_installed_agents():
        yield NamedAgent(agent.name, "PATH", agent.command, description=agent.title, problem=agent.problem)


def _installed(home: Path) -> Iterator[NamedAgent]:
    for each in AgentEnvironments(home).read():
        if isinstance(each, Receipt):
            yield NamedAgent(each.name, "installed", each.full_command(), {}, each.description, each.version)
        else:
            yield NamedAgent(each.name, "installed", problem=each.problem)


def _read_own(path: Path) -> list[NamedAgent]:
    text = read_file(path)
    if text is None:
        return []
    content = _decode(path, text, _OwnFile)
    foreign = {name: entry for name, entry in content.agent_servers.items() if "command" in entry}
    try:
        entries = {**msgspec.convert(foreign, dict[str, _Entry]), **content.agents}
    except msgspec.ValidationError as error:
        raise BadAgentsFile(path, f"agent_servers: {error}") from None
    return [_own(name, entry) for name, entry in entries.items()]


def _own(name: str, entry: _Entry) -> NamedAgent:
    command = (os.path.expanduser(entry.command), *entry.args)  # noqa: PTH111 -- a bare command is no path
    return NamedAgent(name, OWN_FILE, command, entry.env, entry.description)


def read_registry(path: Path) -> list[Manifest]:
    """Return the entries of a copy of the registry; none without one. Raises BadAgentsFile."""
    text = read_file(path)
    return [] if text is None else decode_registry(path, text)


def decode_registry(path: Path, text: bytes) -> list[Manifest]:
    """Return the entries of a registry; raises BadAgentsFile."""
    return _decode(path, text, _Registry).agents


def _read_manifest(manifest: Manifest) -> NamedAgent:
    command, env, problem = _find_command(manifest.distribution)
    return NamedAgent(manifest.id, REGISTRY_FILE, command, env, manifest.description, manifest.version, problem=problem)


def _find_command(ways: Distribution) -> tuple[tuple[str, ...], Mapping[str, str], str]:
    """Return the command of an agent here: a program that is installed, else a package that a runner fetches."""
    target = platform_name()
    binary = ways.binary.get(target)
    if binary is not None and (program := shutil.which(Path(binary.cmd).name)):
        return (program, *binary.args), binary.env, ""
    runners = {"npx": (("npx", "-y"), ways.npx), "uvx": (("uvx",), ways.uvx)}
    offered = {name: (start, package) for name, (start, package) in runners.items() if package is not None}
    for name, (start, package) in offered.items():
        if shutil.which(name):
            return (*start, *_words(package, "--package" if name == "npx" else "--from")), package.env, ""
    if offered:
        return (), {}, f"it needs {' or '.join(offered)}, which is not installed"
    if binary is not None:
        program = Path(binary.cmd).name
        return (), {}, f"{program} is not on the PATH; it is in {binary.archive}, which is to be unpacked there"
    return (), {}, f"the registry has nothing for {target}"


def _words(package: Package, option: str) -> list[str]:
    """Return the package and its arguments as a runner takes them."""
    named = [option, package.package, package.cmd] if package.cmd else [package.package]
    return [*named, *package.args]


def platform_name() -> str:
    """Return the registry's name of this platform."""
    return f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(platform.machine().lower(), '?')}"


def read_file(path: Path) -> bytes | None:
    """Return a file of agents, or None if it is not there; raises BadAgentsFile."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadAgentsFile(path, f"it cannot be read: {error.strerror}") from None
    if len(text) > MAX_FILE_BYTES:
        raise BadAgentsFile(path, f"it has more than {MAX_FILE_BYTES} bytes")
    return text.removeprefix(b"\xef\xbb\xbf")


def _decode(path: Path, text: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadAgentsFile(path, f"{error}") from None
