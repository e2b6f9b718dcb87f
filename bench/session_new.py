"""From spawning an agent to its response to `session/new`, compared with every Python agent that installs.

And `session/new` in a running agent, compared with the least that it must do: write a file and its directory to disk.

The other agents have a model that needs no key: fast-agent its passthrough, pydantic-acp its library's test model,
deepagents LangChain's fake one. Ours has its guide, and once a provider's model, whose library it imports after the
response.
"""

import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from bench import commands
from bench.commands import Command
from bench.measure import Measure, MissingError, Target
from bench.raw_agent import RawAgent
from bench.size import size

OURS = "dragoman agent"
SYNCED = "a file and its folder on the disk"
SESSIONS = size(30, 2)
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
    """Start an agent in an empty directory, which is also its home, and return when it has a session."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {"HOME": folder, "OPENAI_API_KEY": "none"}
        started = perf_counter()
        with RawAgent(command, environment=environment, cwd=Path(folder)) as agent:
            agent.initialize()
            if "sessionId" not in agent.call("session/new", {"cwd": folder, "mcpServers": []}).result:
                raise RuntimeError(f"{command[0]} answered session/new without a session")
            return 1000 * (perf_counter() - started)


def time_next_session_ms(command: Command) -> float:
    """Return the median of the sessions after the first."""
    with tempfile.TemporaryDirectory() as folder:
        place = {"cwd": folder, "mcpServers": []}
        with RawAgent(command, environment={"DRAGOMAN_HOME": folder}, cwd=Path(folder)) as agent:
            agent.initialize()
            agent.call("session/new", place)
            return statistics.median(_time_ms(lambda: agent.call("session/new", place)) for _ in range(SESSIONS))


def time_synced_file_ms() -> float:
    """Return the median time of as many small files, each synced to disk with its name."""
    with tempfile.TemporaryDirectory() as folder:
        return statistics.median(
            _time_ms(lambda number=number: _sync_file(folder, number)) for number in range(SESSIONS)
        )


def _sync_file(folder: str, number: int) -> None:
    for path, flags in ((f"{folder}/{number}", os.O_WRONLY | os.O_CREAT | os.O_EXCL), (folder, os.O_RDONLY)):
        descriptor = os.open(path, flags)
        if flags & os.O_CREAT:
            os.write(descriptor, bytes(400))
        os.fsync(descriptor)
        os.close(descriptor)


def _time_ms(work: Callable[[], object]) -> float:
    started = perf_counter()
    work()
    return 1000 * (perf_counter() - started)


def time_peer_ms(command: Command) -> float:
    """Measure a foreign agent in the same way. Raises MissingError if it could not start."""
    try:
        return time_session_ms(command)
    except (RuntimeError, OSError) as error:
        raise MissingError(f"it could not start: {error}") from error


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
    Measure(
        part="session",
        title="session/new in a running agent",
        unit="ms",
        contenders={OURS: lambda: time_next_session_ms(commands.dragoman("agent")), SYNCED: time_synced_file_ms},
        targets=(),
        ratios=((OURS, SYNCED),),
        rounds=11,
        quick_rounds=3,
    ),
)
