"""The agents of a local `registry.json`, beside this file, started as `dragoman` starts those of the ACP registry.

It is written by hand, in the form of the registry, with agents that npx or uvx can fetch. `python -m
bench.matrix.registry` prints the packages of npx, for the installation.
"""

from pathlib import Path

from bench import commands
from bench.commands import Command
from bench.matrix.subject import Subject
from bench.measure import Missing
from dragoman.cli.agents.known import CannotStart, NamedAgent, known_agents

NPM_CACHE = commands.INSTALLED_PEERS / "npm"
"""Of npx, which looks for its own in the home, and a subject has a new home."""
UV_CACHE = commands.INSTALLED_PEERS / "uv"


def registry_agents() -> tuple[Subject, ...]:
    """Return a subject for each agent of the copy."""
    return tuple(_subject(agent) for agent in _agents())


def npx_packages() -> list[str]:
    """Return the packages that npx fetches."""
    return [agent.command[2] for agent in _agents() if agent.command[:2] == ("npx", "-y")]


def _agents() -> list[NamedAgent]:
    return list(known_agents(Path(__file__).parent).values())


def _subject(agent: NamedAgent) -> Subject:
    def find() -> Command:
        try:
            return tuple(agent.require_command())
        except CannotStart as error:
            raise Missing(str(error)) from None

    return Subject(
        name=agent.name,
        about=f"{agent.description}, by its entry in a local `registry.json`: `{' '.join(agent.command)}`, without a "
        "key, so that it is asked nothing",
        version=lambda: agent.version,
        command=find,
        prompt=False,
        env={"npm_config_cache": str(NPM_CACHE), "UV_CACHE_DIR": str(UV_CACHE), **agent.env},
    )


if __name__ == "__main__":
    print("\n".join(npx_packages()))
