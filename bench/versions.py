"""Protocol versions in the bridge: chunks for a viewer of the other version than the agent's, and of the same.

A viewer of version 1 learns the end of its prompt from the response, a viewer of version 2 from a state. The agent of
version 1 sends chunks without message IDs, which version 2 requires, so each chunk is rewritten.
"""

from bench import commands
from bench.bridge import AGENT, CLIENT, bridge
from bench.client_run import run_reporter
from bench.measure import Measure, Target
from bench.stream import CHUNKS, OPTIONS, read_rate

AGENT_V2 = commands.python("v2_agent.py")
TRANSLATED = "translated"
SAME = "the same version"


def run(agent: tuple[str, ...], protocol: int) -> float:
    """Stream through the bridge to a viewer of a version. Return thousands of chunks per second."""
    with bridge(agent) as where:
        return read_rate(run_reporter((*CLIENT, *where, "--protocol", str(protocol), *OPTIONS)))


def _measure(agent: tuple[str, ...], version: int) -> Measure:
    return Measure(
        part="versions",
        title=f"{CHUNKS:,} chunks of an agent of version {version}",
        unit="k msg/s",
        contenders={TRANSLATED: lambda: run(agent, 3 - version), SAME: lambda: run(agent, version)},
        targets=(Target(TRANSLATED, SAME, "at least", 0.5),),
        rounds=5,
        quick_rounds=3,
    )


MEASURES = (_measure(AGENT, 1), _measure(AGENT_V2, 2))
