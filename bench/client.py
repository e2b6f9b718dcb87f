"""The client: updates per second through the public API, with typed events, and its memory with a slow reader.

The same fast agent feeds every client. The raw wire decodes and counts each update, without sessions, events or
readers. The client of the SDK passes each update to a callback.
"""

import sys

from bench import commands
from bench.client_run import run_client
from bench.measure import PYTHON_SDK, Measure, MissingError, Target
from bench.pairs import DRAGOMAN_CLIENT, PYTHON_SDK_CLIENT
from bench.stream import CHUNKS, OPTIONS, read_rate

OURS = "dragoman.client"
WIRE = "the raw wire"
LIBRARY = commands.python("dragoman_library.py")
AGENT = commands.python("dragoman_agent.py")
MIB = 1024 * 1024

MANY_CHUNKS = 20 * CHUNKS
SLOW_OPTIONS = ("--chunks", str(MANY_CHUNKS), "--size", "40", "--slow-after", "100")
"""A million updates (250 MB of lines) for a reader that stops after the first hundred."""


def measure_growth_mib() -> float:
    """Return the growth of a client's memory while its reader stops. Raises MissingError if it cannot be read."""
    if sys.platform != "linux":
        raise MissingError("the memory of a process is read from /proc, on Linux only")
    report = run_client(LIBRARY, SLOW_OPTIONS, AGENT)
    if report["chunks_received"] != MANY_CHUNKS:
        raise RuntimeError(f"{report['chunks_received']} of {MANY_CHUNKS} chunks came")
    return report["grown_bytes"] / MIB


MEASURES = (
    Measure(
        part="client",
        title=f"{CHUNKS:,} updates read by a client",
        unit="k events/s",
        contenders={
            OURS: lambda: read_rate(run_client(LIBRARY, OPTIONS, AGENT)),
            WIRE: lambda: read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, AGENT)),
            PYTHON_SDK: lambda: read_rate(run_client(PYTHON_SDK_CLIENT, OPTIONS, AGENT)),
        },
        targets=(Target(OURS, PYTHON_SDK, "at least", 10.0),),
        ratios=((OURS, WIRE),),
        rounds=9,
        quick_rounds=3,
    ),
    Measure(
        part="client",
        title=f"memory of a client whose reader stops, {MANY_CHUNKS:,} updates sent",
        unit="MiB more",
        contenders={OURS: measure_growth_mib},
        targets=(Target(OURS, None, "at most", 8.0),),
        rounds=3,
        quick_rounds=1,
    ),
)
