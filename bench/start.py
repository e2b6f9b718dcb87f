"""From spawning an agent to its response to `initialize`."""

from collections.abc import Callable
from time import perf_counter

from bench import commands
from bench.commands import Command
from bench.measure import PYTHON_SDK, TYPESCRIPT_SDK, Measure, Target
from bench.raw_agent import RawAgent

OURS = "dragoman agent"

AGENTS: dict[str, Callable[[], Command]] = {
    OURS: lambda: commands.dragoman("agent"),
    PYTHON_SDK: lambda: commands.python("python_sdk_agent.py"),
    TYPESCRIPT_SDK: lambda: commands.node("typescript_sdk_agent.mjs"),
    "floor: a plain loop": lambda: commands.python("plain_agent.py"),
}


def time_start_ms(command: Command) -> float:
    """Start an agent and return the time until its response to `initialize`."""
    started = perf_counter()
    with RawAgent(command) as agent:
        agent.initialize()
        return 1000 * (perf_counter() - started)


MEASURES = (
    Measure(
        part="start",
        title="spawn to initialize",
        unit="ms",
        contenders={name: lambda make=make: time_start_ms(make()) for name, make in AGENTS.items()},
        targets=(Target(OURS, PYTHON_SDK, "at most", 0.25), Target(OURS, TYPESCRIPT_SDK, "at most", 1.0)),
        rounds=15,
        quick_rounds=5,
    ),
)
