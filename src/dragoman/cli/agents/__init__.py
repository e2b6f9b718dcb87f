"""`dragoman agents`: list, check, install and remove agents, and update the registry."""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path

import msgspec

from dragoman.catalog.known import OWN_FILE, REGISTRY_FILE, NamedAgent, known_agents
from dragoman.catalog.registry import MAX_FILE_BYTES, decode_registry, read_file, read_registry
from dragoman.cli.options import UsageError, describe_unknown
from dragoman.cli.output import print_error, print_json
from dragoman.errors import DragomanError
from dragoman.home import home
from dragoman.text import one_line


class _AgentRow(msgspec.Struct, omit_defaults=True):
    """An agent in the list. The values of its environment may be secret, so only their names are shown."""

    name: str
    source: str
    command: Sequence[str]
    env: Sequence[str]
    description: str = ""
    version: str = ""
    problem: str = ""


def main(options: argparse.Namespace) -> int:
    """List, check, install or remove agents, or update the registry. Return 1 on failure."""
    try:
        if options.action == "check":
            return _check(options.name)
        if options.action == "update":
            return _update(options.registry, home() / REGISTRY_FILE)
        if options.action in ("install", "remove"):
            from dragoman.cli.agents.install import install_agent, remove_agent

            if options.action == "remove":
                return remove_agent(options.name, home())
            return install_agent(options.name, home(), is_agreed=options.yes)
        return _list(options)
    except UsageError:
        raise
    except DragomanError as error:
        print_error("agents", error)
        return 1


def _check(name: str) -> int:
    """Check an agent as `dragoman check agent -- NAME` does."""
    from dragoman.cli import main as run_command

    if name not in (known := known_agents(home())):
        raise UsageError(describe_unknown("agent", name, known))
    return run_command(["check", "agent", "--report-name", name, "--", name])


def _update(source: str, path: Path) -> int:
    """Replace our copy of the registry with a file or URL. An invalid registry leaves the old copy in place."""
    text = _download(source) if "://" in source else read_file(Path(source))
    if text is None:
        raise UsageError(f"there is no file {source}; expected a registry.json file or its https URL")
    before = {each.id: each.version for each in read_registry(path)}
    after = {each.id: each.version for each in decode_registry(Path(source), text)}
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(text)
    fresh.replace(path)
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    changed = sorted(name for name in after.keys() & before.keys() if after[name] != before[name])
    print(f"{path} has {len(after)} agents now.")
    for label, names in (("new", added), ("new version", changed), ("gone", removed)):
        if names:
            print(one_line(f"{label}: {', '.join(names)}"))
    return 0


def _download(url: str) -> bytes:
    """Download a registry. Raises DownloadError or UsageError."""
    if not url.startswith("https://"):
        raise UsageError(f"{url} is not an https address, so its content cannot be trusted; expected https")
    from dragoman.catalog.download import download

    text = BytesIO()
    download(url, text, MAX_FILE_BYTES)
    return text.getvalue()


def _list(options: argparse.Namespace) -> int:
    agents = known_agents(home()).values()
    if options.format == "json":
        print_json(msgspec.json.encode([_row(agent) for agent in agents]))
    elif agents:
        for line in _lines(agents):
            print(line)
    else:
        print(
            f"No agents are known, and none is on PATH. Add agents to {home() / OWN_FILE}, or download the ACP "
            f"registry to {home() / REGISTRY_FILE} with dragoman agents update FILE.",
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
