"""The agents that dragoman knows by name, from four sources. An earlier source wins if two have the same name.

1. `$DRAGOMAN_HOME/agents.json`: `{"agents": {"NAME": {"command": "…", "args": […], "env": {…}, "description": "…"}}}`.
   The `agent_servers` of Zed's settings have the same form and can be copied there.
2. Agents that `dragoman agents install` installed.
3. Programs on PATH.
4. `$DRAGOMAN_HOME/registry.json`, a copy of the ACP registry:
   `{"version": "1.0.0", "agents": [{"id": …, "distribution": …}]}`.
"""

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.catalog.installed import AgentEnvironments, Receipt
from dragoman.catalog.on_path import find_installed_agents
from dragoman.catalog.registry import KnownAgentsError, Manifest, decode, read_file, read_registry
from dragoman.errors import DragomanError

OWN_FILE = "agents.json"
REGISTRY_FILE = "registry.json"


class AgentUnavailableError(DragomanError):
    """The agent is known, but cannot be started on this machine."""


class NamedAgent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent that the user can select by its name."""

    name: str
    source: Literal["agents.json", "installed", "registry.json", "PATH"]
    command: tuple[str, ...] = ()
    """Empty for an agent that cannot be started here. `problem` has the reason."""
    env: Mapping[str, str] = {}
    description: str = ""
    version: str = ""
    problem: str = ""

    def require_command(self) -> list[str]:
        """Return the agent's command. Raises AgentUnavailableError."""
        if not self.command:
            raise AgentUnavailableError(f"the agent {self.name} cannot be started: {self.problem}")
        return list(self.command)


class _Entry(msgspec.Struct):
    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    description: str = ""


class _OwnFile(msgspec.Struct):
    agents: dict[str, _Entry] = {}
    agent_servers: dict[str, dict[str, Any]] = {}
    """Zed's entries. Those without a command configure agents that Zed includes, and are ignored."""


def known_agents(home: Path) -> dict[str, NamedAgent]:
    """Return all known agents by name. Raises KnownAgentsError."""
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
    content = decode(path, text, _OwnFile)
    foreign = {name: entry for name, entry in content.agent_servers.items() if "command" in entry}
    try:
        entries = {**msgspec.convert(foreign, dict[str, _Entry]), **content.agents}
    except msgspec.ValidationError as error:
        raise KnownAgentsError(path, f"agent_servers: {error}") from None
    return [_own(name, entry) for name, entry in entries.items()]


def _own(name: str, entry: _Entry) -> NamedAgent:
    command = (os.path.expanduser(entry.command), *entry.args)  # noqa: PTH111 -- a bare command is no path
    return NamedAgent(name, OWN_FILE, command, entry.env, entry.description)


def _read_manifest(manifest: Manifest) -> NamedAgent:
    """Return an agent for a registry entry, without a command, because the user has not agreed to it yet."""
    step = f"it is in the registry but not installed; install it: dragoman agents install {shlex.quote(manifest.id)}"
    return NamedAgent(manifest.id, REGISTRY_FILE, (), {}, manifest.description, manifest.version, problem=step)
