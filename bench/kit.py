"""An agent made with the kit, our own agent and an agent on the official SDK, with the same client.

The agent of the kit and our agent store their sessions on disk, and each of their turns ends with a sync. The others
store nothing.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import commands
from bench.client_run import run_client
from bench.commands import Command
from bench.measure import PYTHON_SDK, Measure, Target
from bench.pairs import DRAGOMAN_CLIENT
from bench.roundtrip import read_p50_us
from bench.size import size
from bench.start import time_start_ms
from bench.stream import OPTIONS, read_rate, run_script_agent

KIT = "kit agent"
OURS = "dragoman agent"
BARE = "a bare connection"

ROUNDTRIPS = ("--roundtrips", str(size(200, 5)))
SPARE_TURNS = size(400, 10)
"""More prompts than the client sends, including those for the warm-up."""

_AGENTS: dict[str, Callable[[], Command]] = {
    KIT: lambda: commands.on_dragoman("kit_agent.py"),
    BARE: lambda: commands.on_dragoman("dragoman_agent.py"),
    PYTHON_SDK: lambda: commands.python("python_sdk_agent.py"),
}


def time_own_roundtrip_us() -> float:
    """Measure our own agent with a model that answers one word."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "words.yaml"
        script.write_text("- - text: ok\n" * (200 + SPARE_TURNS))
        command = commands.dragoman("agent", "--model", f"script:{script}")
        return read_p50_us(run_client(DRAGOMAN_CLIENT, ROUNDTRIPS, command))


MEASURES = (
    Measure(
        part="kit",
        title="spawn to initialize, an agent of the kit",
        unit="ms",
        contenders={
            name: lambda make=make: time_start_ms(make())
            for name, make in (_AGENTS | {OURS: lambda: commands.dragoman("agent")}).items()
        },
        targets=(Target(KIT, OURS, "at most", 1.1), Target(KIT, PYTHON_SDK, "at most", 0.25)),
        rounds=11,
        quick_rounds=3,
    ),
    Measure(
        part="kit",
        title="50,000 chunks from an agent of the kit",
        unit="k msg/s",
        contenders={
            name: lambda make=make: read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, make()))
            for name, make in _AGENTS.items()
        }
        | {OURS: run_script_agent},
        targets=(Target(KIT, OURS, "at least", 0.9),),
        ratios=((KIT, BARE),),
        rounds=7,
        quick_rounds=3,
    ),
    Measure(
        part="kit",
        title="round trip to an agent of the kit, p50",
        unit="µs",
        contenders={
            name: lambda make=make: read_p50_us(run_client(DRAGOMAN_CLIENT, ROUNDTRIPS, make()))
            for name, make in _AGENTS.items()
        }
        | {OURS: time_own_roundtrip_us},
        targets=(Target(KIT, OURS, "at most", 1.1),),
        ratios=((KIT, BARE),),
        rounds=7,
        quick_rounds=3,
    ),
)
