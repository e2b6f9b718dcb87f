"""50,000 chunks of 40 bytes from an agent to a client, through a pipe between two processes."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import commands
from bench.client_run import run_client, run_reporter
from bench.measure import PYTHON_SDK, Measure, Target
from bench.pairs import DRAGOMAN_CLIENT, OURS, contenders
from bench.size import size

CHUNKS = size(50_000, 200)
CHUNK_BYTES = 40
WARM_UP_CHUNKS = 100  # the clients request these first

OPTIONS = ("--chunks", str(CHUNKS), "--size", str(CHUNK_BYTES))
SCRIPT = f"""\
- - text: {"x" * CHUNK_BYTES}
    repeat: {WARM_UP_CHUNKS}
- - text: {"x" * CHUNK_BYTES}
    repeat: {CHUNKS}
"""


def read_rate(report: dict[str, Any]) -> float:
    """Return thousands of messages per second. Raises RuntimeError if some are missing."""
    if report["chunks_received"] != CHUNKS:
        raise RuntimeError(f"{report['chunks_received']} of {CHUNKS} chunks came")
    return report["chunks_per_s"] / 1000


@contextmanager
def script_file() -> Generator[Path]:
    """Write the script that makes the real agent stream."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "stream.yaml"
        script.write_text(SCRIPT)
        yield script


def run_script_agent() -> float:
    """Stream from the real `dragoman agent` with a scripted model."""
    with script_file() as script:
        agent = commands.dragoman("agent", "--model", f"script:{script}")
        return read_rate(run_client(DRAGOMAN_CLIENT, OPTIONS, agent))


def run_limit() -> float:
    """Copy the lines through a pipe and decode each, without any other work."""
    return run_reporter((*commands.python("pipe_limit.py"), *OPTIONS))["chunks_per_s"] / 1000


MEASURES = (
    Measure(
        part="stream",
        title="50,000 chunks, back to back",
        unit="k msg/s",
        contenders=contenders(OPTIONS, read_rate)
        | {"dragoman agent, script": run_script_agent, "limit: pipe and decode": run_limit},
        targets=(Target(OURS, PYTHON_SDK, "at least", 20.0),),
        rounds=9,
        quick_rounds=3,
    ),
    Measure(
        part="stream",
        title="50,000 chunks, a yield each",
        unit="k msg/s",
        contenders=contenders((*OPTIONS, "--yield"), read_rate),
        targets=(Target(OURS, PYTHON_SDK, "at least", 5.0),),
        rounds=7,
        quick_rounds=3,
    ),
)
