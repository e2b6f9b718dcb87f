"""`session/load` of a session with 100,000 updates, on bare pipes.

A prompt to the real agent creates the session once. The SDK sends one of its updates as often, encoded beforehand. The
limit copies the exact bytes of the replay from a file.
"""

import os
import tempfile
from functools import cache
from pathlib import Path
from time import perf_counter

import msgspec

from bench import commands
from bench.commands import Command
from bench.measure import PYTHON_SDK, Measure, Target
from bench.raw_agent import RawAgent
from bench.size import size
from bench.stream import CHUNK_BYTES

UPDATES = size(100_000, 500)
CWD = "/"

OURS = "dragoman agent"
LIMIT = "limit: copy through a pipe"

# A prompt and the resulting title are updates as well.
SCRIPT = f"""\
- - text: {"x" * CHUNK_BYTES}
    repeat: {UPDATES - 2}
"""


class Replay(msgspec.Struct, frozen=True):
    """A recorded session: the request, the number of its updates, and one of them."""

    request: dict[str, object]
    lines: Path
    update: Path


@cache
def record() -> Replay:
    """Create the session in the home of this run, load it once and keep the response."""
    folder = Path(tempfile.mkdtemp(dir=os.environ["DRAGOMAN_HOME"]))
    script = folder / "script.yaml"
    script.write_text(SCRIPT)
    with RawAgent(commands.dragoman("agent", "--model", f"script:{script}")) as agent:
        agent.initialize()
        session_id = agent.call("session/new", {"cwd": CWD, "mcpServers": []}).result["sessionId"]
        agent.call("session/prompt", {"sessionId": session_id, "prompt": [{"type": "text", "text": "Go on."}]})
    replay = Replay(
        {"sessionId": session_id, "cwd": CWD, "mcpServers": []}, folder / "replay.jsonl", folder / "update.json"
    )
    with RawAgent(commands.dragoman("agent")) as agent:
        agent.initialize()
        lines = b"".join(agent.exchange("session/load", replay.request))
    replay.lines.write_bytes(lines)
    replay.update.write_bytes(msgspec.json.encode(msgspec.json.decode(lines.split(b"\n", 3)[2])["params"]["update"]))
    return replay


def time_load(command: Command) -> float:
    """Load the session. Return thousands of updates per second. Raises RuntimeError if some are missing."""
    with RawAgent(command) as agent:
        agent.initialize()
        started = perf_counter()
        updates = agent.call("session/load", record().request).notifications
        seconds = perf_counter() - started
    if updates != UPDATES:
        raise RuntimeError(f"{updates} of {UPDATES} updates came")
    return updates / seconds / 1000


def load_ours() -> float:
    record()
    return time_load(commands.dragoman("agent"))


def load_python_sdk() -> float:
    return time_load((*commands.python("python_sdk_replayer.py"), str(UPDATES), str(record().update)))


def copy_lines() -> float:
    return time_load((*commands.python("file_copy.py"), str(record().lines)))


MEASURES = (
    Measure(
        part="replay",
        title="load of 100,000 updates",
        unit="k msg/s",
        contenders={OURS: load_ours, PYTHON_SDK: load_python_sdk, LIMIT: copy_lines},
        targets=(Target(OURS, LIMIT, "at least", 0.5),),
        rounds=7,
        quick_rounds=3,
    ),
)
