"""A file with several agents, in the format of `agents.json`. The first agent is the default.

    {"agents": {"ours": {"command": "dragoman", "args": ["agent"], "env": {…}, "cwd": "…", "title": "Our own"}, …}}

The key `agent_servers`, which editors use, is accepted as well. If a name cannot be part of a URL, it becomes the
agent's title, and a valid name is made from it.
"""

import os
import re
from pathlib import Path
from typing import Any

import msgspec

from dragoman.bridge.problem import AgentsFileError
from dragoman.bridge.settings import AgentSpec, is_agent_name

_UNUSABLE = re.compile(r"[^a-z0-9._-]+")
_EXPECTED = '{"agents": {"NAME": {"command": "…", "args": ["…"]}}}'


class _Entry(msgspec.Struct):
    command: str
    args: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    title: str | None = None


class _File(msgspec.Struct):
    agents: dict[str, _Entry] = {}
    agent_servers: dict[str, dict[str, Any]] = {}


def read_agents_file(path: Path) -> tuple[AgentSpec, ...]:
    """Read the agents for a bridge. Raises AgentsFileError, which names the problem and its position."""
    try:
        file = msgspec.json.decode(path.read_bytes(), type=_File)
        foreign = {name: entry for name, entry in file.agent_servers.items() if "command" in entry}
        entries = {**msgspec.convert(foreign, dict[str, _Entry]), **file.agents}
    except OSError as error:
        raise AgentsFileError(str(path), f"cannot be read: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AgentsFileError(str(path), f"{error}; expected {_EXPECTED}") from None
    specs: dict[str, AgentSpec] = {}
    for given, entry in entries.items():
        spec = _make(path, given, entry)
        if spec.name in specs:
            raise AgentsFileError(
                str(path), f"two agents would have the name {spec.name}; use a different name for each"
            )
        specs[spec.name] = spec
    if not specs:
        raise AgentsFileError(str(path), f"contains no agent; expected {_EXPECTED}")
    return tuple(specs.values())


def _make(path: Path, given: str, entry: _Entry) -> AgentSpec:
    name = given if is_agent_name(given) else _UNUSABLE.sub("-", given.lower()).strip("-._")[:64]
    if not is_agent_name(name):
        raise AgentsFileError(str(path), f"agent {given!r}: the name has no letters or digits; add some")
    if not entry.command:
        raise AgentsFileError(str(path), f"agent {given!r}: its command is empty; name the program to start")
    command = (os.path.expanduser(entry.command), *entry.args)  # noqa: PTH111 -- a bare command is no path
    cwd = None if entry.cwd is None else str(path.parent / Path(entry.cwd).expanduser())
    return AgentSpec(name, command, cwd, entry.env, entry.title or (given if given != name else None))
