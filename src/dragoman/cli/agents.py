"""`dragoman agents`: the agents that are known by name: in the person's own file, on PATH, or in the ACP registry.

Two are files in `$DRAGOMAN_HOME`:

* `agents.json`: `{"agents": {"NAME": {"command": "…", "args": […], "env": {…}, "description": "…"}}}`. The
  `agent_servers` of Zed's settings have the same form and may be put there as they are.
* `registry.json`: the registry's own `registry.json`, `{"version": "1.0.0", "agents": [{"id": …, "distribution": …}]}`.

A name in `agents.json` counts before a program on PATH, and that before the same name in the registry.
"""

import argparse
import os
import platform
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from dragoman.cli.options import UsageError, describe_unknown
from dragoman.cli.output import complain, print_json
from dragoman.client.installed_agents import find_installed_agents
from dragoman.errors import DragomanError
from dragoman.home import home
from dragoman.text import one_line

T = TypeVar("T")

OWN_FILE = "agents.json"
REGISTRY_FILE = "registry.json"

MAX_FILE_BYTES = 16 * 1024 * 1024
"""The registry has some hundred kilobytes; a file larger than this is something else."""

DOWNLOAD_S = 30.0
"""For the server of a registry to answer."""

_SYSTEMS = {"darwin": "darwin", "linux": "linux", "win32": "windows"}
_MACHINES = {"arm64": "aarch64", "aarch64": "aarch64", "x86_64": "x86_64", "amd64": "x86_64"}


class BadAgentsFile(DragomanError):
    """A file of agents cannot be used."""

    def __init__(self, path: Path, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"{path}: {problem}; mend that file, or move it away")


class RegistryUnreachable(DragomanError):
    """A registry cannot be fetched."""


class CannotStart(DragomanError):
    """An agent is known, but there is no way to start it here."""


class NamedAgent(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """An agent that can be called by its name."""

    name: str
    source: Literal["agents.json", "registry.json", "PATH"]
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


class _Package(msgspec.Struct):
    package: str
    args: list[str] = []
    env: dict[str, str] = {}


class _Binary(msgspec.Struct):
    archive: str
    cmd: str
    args: list[str] = []
    env: dict[str, str] = {}


class _Distribution(msgspec.Struct):
    npx: _Package | None = None
    uvx: _Package | None = None
    binary: dict[str, _Binary] = {}


class _Manifest(msgspec.Struct):
    id: str
    distribution: _Distribution
    version: str = ""
    description: str = ""


class _Registry(msgspec.Struct):
    agents: list[_Manifest]


class _AgentRow(msgspec.Struct, rename="camel", omit_defaults=True):
    """An agent, without the values of its environment, which may be secret."""

    name: str
    source: str
    command: Sequence[str]
    env: Sequence[str]
    description: str = ""
    version: str = ""
    problem: str = ""


def main(options: argparse.Namespace) -> int:
    """List them, check one, or take another copy of the registry; 1 when a file of them cannot be used."""
    try:
        if options.action == "check":
            return _check(options.name)
        if options.action == "update":
            return _update(options.registry, home() / REGISTRY_FILE)
        return _list(options)
    except UsageError:
        raise
    except DragomanError as error:
        complain("agents", error)
        return 1


def _check(name: str) -> int:
    """Judge an agent as `dragoman check agent -- NAME` does."""
    from dragoman.cli import main as run_command

    if name not in (known := known_agents(home())):
        raise UsageError(describe_unknown("agent", name, known))
    return run_command(["check", "agent", "--name", name, "--", name])


def _update(source: str, path: Path) -> int:
    """Take a copy of the registry, from a file or an address, if it is one; the old copy stays otherwise."""
    text = _download(source) if "://" in source else _read(Path(source))
    if text is None:
        raise UsageError(
            f"there is no file {source}; name a copy of the registry's registry.json, or its https address"
        )
    before = {agent.name: agent.version for agent in _read_registry(path)}
    after = {each.id: each.version for each in _decode(Path(source), text, _Registry).agents}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text)
    fresh.replace(path)
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    changed = sorted(name for name in after.keys() & before.keys() if after[name] != before[name])
    print(f"{path} has {len(after)} agents now.")
    for words, names in (("new", added), ("another version", changed), ("gone", removed)):
        if names:
            print(one_line(f"{words}: {', '.join(names)}"))
    return 0


def _download(url: str) -> bytes:
    """Fetch a registry; raises BadAgentsFile."""
    from urllib.error import URLError
    from urllib.request import urlopen

    if not url.startswith("https://"):
        raise UsageError(f"{url} is no https address, so anybody on the way could change what it gives; give one")
    try:
        with urlopen(url, timeout=DOWNLOAD_S) as answer:  # noqa: S310 -- it is https
            text: bytes = answer.read(MAX_FILE_BYTES + 1)
    except (URLError, OSError) as error:
        raise RegistryUnreachable(
            f"{url} cannot be fetched: {getattr(error, 'reason', error)}; see that it is right"
        ) from None
    if len(text) > MAX_FILE_BYTES:
        raise RegistryUnreachable(f"{url} has more than {MAX_FILE_BYTES} bytes, so it is no registry")
    return text


def _list(options: argparse.Namespace) -> int:
    agents = known_agents(home()).values()
    if options.format == "json":
        print_json(msgspec.json.encode([_row(agent) for agent in agents]))
    elif agents:
        for line in _lines(agents):
            print(line)
    else:
        print(
            f"No agents are known by name, and none is on PATH. Put them into {home() / OWN_FILE}, or take a copy of "
            f"the ACP registry into {home() / REGISTRY_FILE} with dragoman agents update FILE.",
            file=sys.stderr,
        )
    return 0


def _row(agent: NamedAgent) -> _AgentRow:
    return _AgentRow(
        agent.name, agent.source, agent.command, sorted(agent.env), agent.description, agent.version, agent.problem
    )


def _lines(agents: Iterable[NamedAgent]) -> Iterator[str]:
    for agent in agents:
        version = f" {agent.version}" if agent.version else ""
        about = f": {agent.description}" if agent.description else ""
        yield one_line(f"{agent.name}{version} ({agent.source}){about}")
        yield "  " + one_line(shlex.join(agent.command) if agent.command else f"cannot be started: {agent.problem}")


def known_agents(home: Path) -> dict[str, NamedAgent]:
    """Return every agent that is known by name; raises BadAgentsFile."""
    found = {agent.name: agent for agent in _read_registry(home / REGISTRY_FILE)}
    for installed in find_installed_agents():
        if installed.command or installed.name not in found:
            found[installed.name] = NamedAgent(
                installed.name, "PATH", installed.command, description=installed.title, problem=installed.problem
            )
    found |= {agent.name: agent for agent in _read_own(home / OWN_FILE)}
    return dict(sorted(found.items()))


def _read_own(path: Path) -> list[NamedAgent]:
    text = _read(path)
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


def _read_registry(path: Path) -> list[NamedAgent]:
    text = _read(path)
    return [] if text is None else [_read_manifest(manifest) for manifest in _decode(path, text, _Registry).agents]


def _read_manifest(manifest: _Manifest) -> NamedAgent:
    command, env, problem = _find_command(manifest.distribution)
    return NamedAgent(manifest.id, REGISTRY_FILE, command, env, manifest.description, manifest.version, problem=problem)


def _find_command(ways: _Distribution) -> tuple[tuple[str, ...], Mapping[str, str], str]:
    """Return the command of an agent here: a program that is installed, else a package that a runner fetches."""
    target = f"{_SYSTEMS.get(sys.platform, sys.platform)}-{_MACHINES.get(platform.machine().lower(), '?')}"
    binary = ways.binary.get(target)
    if binary is not None and (program := shutil.which(Path(binary.cmd).name)):
        return (program, *binary.args), binary.env, ""
    runners = {"npx": (("npx", "-y"), ways.npx), "uvx": (("uvx",), ways.uvx)}
    offered = {name: (start, package) for name, (start, package) in runners.items() if package is not None}
    for name, (start, package) in offered.items():
        if shutil.which(name):
            return (*start, package.package, *package.args), package.env, ""
    if offered:
        return (), {}, f"it needs {' or '.join(offered)}, which is not installed"
    if binary is not None:
        program = Path(binary.cmd).name
        return (), {}, f"{program} is not on the PATH; it is in {binary.archive}, which is to be unpacked there"
    return (), {}, f"the registry has nothing for {target}"


def _read(path: Path) -> bytes | None:
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
