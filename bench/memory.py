"""The resident memory of an agent after its response to `initialize`."""

from bench.commands import Command
from bench.measure import PYTHON_SDK, Measure, Target
from bench.raw_agent import RawAgent
from bench.start import AGENTS, OURS

MIB = 1024 * 1024


def measure_rss_mib(command: Command) -> float:
    """Start an agent and return its resident memory after the response to `initialize`."""
    with RawAgent(command) as agent:
        agent.initialize()
        return agent.read_rss_bytes() / MIB


MEASURES = (
    Measure(
        part="memory",
        title="memory after initialize",
        unit="MiB",
        contenders={name: lambda make=make: measure_rss_mib(make()) for name, make in AGENTS.items()},
        targets=(Target(OURS, PYTHON_SDK, "at most", 0.55),),
        rounds=5,
        quick_rounds=3,
    ),
)
