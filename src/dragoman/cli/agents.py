"""`dragoman agents`: the agents that are known by name."""

import argparse
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from dragoman.cli.agent_names import OWN_FILE, REGISTRY_FILE, NamedAgent, known_agents
from dragoman.cli.home import home
from dragoman.cli.output import complain, print_json
from dragoman.errors import DragomanError
from dragoman.text import one_line


class _Row(msgspec.Struct, rename="camel", omit_defaults=True):
    """An agent, without the values of its environment, which may be secret."""

    name: str
    source: str
    command: Sequence[str]
    env: Sequence[str]
    description: str = ""
    version: str = ""
    problem: str = ""


def main(options: argparse.Namespace) -> int:
    """List them; 1 when a file of them cannot be used."""
    try:
        agents = known_agents(home()).values()
    except DragomanError as error:
        complain("agents", error)
        return 1
    if options.format == "json":
        print_json(msgspec.json.encode([_row(agent) for agent in agents]))
    elif agents:
        for line in _lines(agents):
            print(line)
    else:
        print(
            f"No agents are known by name. Put them into {home() / OWN_FILE}, or a copy of the ACP registry into "
            f"{home() / REGISTRY_FILE}.",
            file=sys.stderr,
        )
    return 0


def _row(agent: NamedAgent) -> _Row:
    return _Row(
        agent.name, agent.source, agent.command, sorted(agent.env), agent.description, agent.version, agent.problem
    )


def _lines(agents: Iterable[NamedAgent]) -> Iterator[str]:
    for agent in agents:
        version = f" {agent.version}" if agent.version else ""
        about = f": {agent.description}" if agent.description else ""
        yield one_line(f"{agent.name}{version} ({agent.source}){about}")
        yield "  " + one_line(shlex.join(agent.command) if agent.command else f"cannot be started: {agent.problem}")
