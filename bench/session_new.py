"""From spawning an agent to its answer to `session/new`, against every agent written in Python that installs.

Theirs have a model that needs no key: fast-agent its passthrough, pydantic-acp its library's test model, deepagents
LangChain's fake one. Ours has its guide; and once a provider's model, whose library it imports behind the answer.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench import commands
from bench.commands import Command
from bench.measure import Measure, Missing, Target
from bench.raw_agent import RawAgent

OURS = "dragoman agent"
PROVIDER = "dragoman agent, openai:…"
THEIRS: dict[str, Callable[[], Command]] = {
    "pydantic-acp": lambda: commands.peer("pydantic-acp", "python", str(commands.PEERS / "pydantic_acp_agent.py")),
    "deepagents-acp": lambda: commands.peer(
        "deepagents-acp", "python", str(commands.PEERS / "deepagents_acp_agent.py")
    ),
    "fast-agent": lambda: commands.peer("fast-agent", "fast-agent-acp", "--model", "passthrough"),
}
OUR_AGENTS: dict[str, Callable[[], Command]] = {
    OURS: lambda: commands.dragoman("agent"),
    PROVIDER: lambda: commands.dragoman_with_models("agent", "--model", "openai:gpt-5"),
}


def time_session_ms(command: Command) -> float:
    """Start an agent in an empty folder, which is also its home, and return when it has a session."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": folder, "OPENAI_API_KEY": "none"}
        started = perf_counter()
        with RawAgent(command, environment=environment, cwd=Path(folder)) as agent:
            agent.initialize()
            if "sessionId" not in agent.call("session/new", {"cwd": folder, "mcpServers": []}).result:
                raise RuntimeError(f"{command[0]} answered session/new without a session")
            return 1000 * (perf_counter() - started)


def time_peer_ms(command: Command) -> float:
    """Do the same with a foreign agent; raises Missing when it does not start."""
    try:
        return time_session_ms(command)
    except (RuntimeError, OSError) as error:
        raise Missing(f"it does not start: {error}") from error


MEASURES = (
    Measure(
        part="session",
        title="spawn to session/new",
        unit="ms",
        contenders={name: lambda make=make: time_session_ms(make()) for name, make in OUR_AGENTS.items()}
        | {name: lambda make=make: time_peer_ms(make()) for name, make in THEIRS.items()},
        targets=tuple(Target(OURS, name, "at most", 0.25) for name in THEIRS),
        ratios=tuple((PROVIDER, name) for name in THEIRS),
        rounds=11,
        quick_rounds=3,
    ),
)
