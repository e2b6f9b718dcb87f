"""The cost of a turn on top of the bare model library: per streamed chunk, and per call of a tool.

All of them ask the same provider on the loopback interface, twice, and the second time counts. The agents are read by
a raw reader; ours has its log on. Our part is given twice, from the same runs: in time that passed, which a busy
machine spoils, and in the processor's time, which hides waiting. Chunks that come each by itself leave time to idle,
so that only the latter counts there.
"""

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any, Self

import msgspec

from bench import commands
from bench.client_run import run_reporter
from bench.commands import Command
from bench.measure import Measure, Missing
from bench.openai_server import openai_server
from bench.raw_agent import RawAgent

CHUNKS = 5_000
PACED_CHUNKS = 2_000
CALLS = 40
"""Fewer than the 50 requests that a turn may make."""

BARE = "the bare model library"
OURS = "dragoman agent, log on"
ADDED = "added by dragoman"
ADDED_CPU = "added by dragoman, processor"
PEER = "pydantic-acp"

PEER_AGENT = commands.PEERS / "pydantic_acp_agent.py"
PROMPT = [{"type": "text", "text": "Go on."}]
FILE = "tiny.txt"
PROFILE = """\
model:
  name: openai-chat:{name}
  base_url: {url}
"""


class Cost(msgspec.Struct, frozen=True):
    """The cost of a turn: elapsed time, and processor time."""

    wall_s: float
    cpu_s: float


class Place:
    """A folder with a tiny file, a provider, and the prompt."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        (self.folder / FILE).write_text("A tiny file.\n")
        self.url = self._stack.enter_context(openai_server())
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()


def run_bare(place: Place) -> Cost:
    command = (*commands.python("bare_library.py"), place.url, place.name, str(place.folder))
    return msgspec.convert(run_reporter(command), Cost)


def run_ours(place: Place) -> Cost:
    with tempfile.TemporaryDirectory() as home:
        profile = Path(home) / "agent.yaml"
        profile.write_text(PROFILE.format(name=place.name, url=place.url))
        command = commands.dragoman_with_models("agent", "--agent", str(profile))
        return time_second_turn(command, place, {"DRAGOMAN_HOME": home})


def run_peer(place: Place) -> Cost:
    command = commands.peer("pydantic-acp", "python", str(PEER_AGENT), place.url, place.name)
    try:
        return time_second_turn(command, place, {})
    except (RuntimeError, OSError) as error:
        raise Missing(f"it does not run: {error}") from error


def time_second_turn(command: Command, place: Place, environment: Mapping[str, str]) -> Cost:
    """Prompt twice, in a session each, and return the cost of the second turn; raises RuntimeError when it failed."""
    with RawAgent(command, environment=environment, cwd=place.folder) as agent:
        agent.initialize()
        time_turn(agent, place)
        return time_turn(agent, place)


def time_turn(agent: RawAgent, place: Place) -> Cost:
    session_id = agent.call("session/new", {"cwd": str(place.folder), "mcpServers": []}).result["sessionId"]
    started, started_cpu = perf_counter(), agent.read_cpu_s()
    answer = agent.call("session/prompt", {"sessionId": session_id, "prompt": PROMPT})
    cost = Cost(perf_counter() - started, agent.read_cpu_s() - started_cpu)
    check(answer.result, answer.notifications, place.name)
    return cost


def check(result: Any, notifications: int, name: str) -> None:
    expected = int(name.rpartition("-")[2])
    if result["stopReason"] != "end_turn" or notifications < expected:
        raise RuntimeError(f"{name} ended with {result}, after {notifications} updates")


class Comparison:
    """Runs the contenders in a place of their own each, and keeps their last costs to compute our part."""

    def __init__(self, kind: str, count: int) -> None:
        self._name = f"{kind}-{count}"
        self._count = count
        self._last: dict[str, Cost] = {}

    def contenders(self, read_s: Callable[[Cost], float]) -> dict[str, Callable[[], float]]:
        """Return the contenders that run, and our part after each pair: the difference of the two."""
        return {
            BARE: lambda: self._us(read_s(self._run(BARE, run_bare))),
            OURS: lambda: self._us(read_s(self._run(OURS, run_ours))),
            ADDED: lambda: self._us(read_s(self._last[OURS]) - read_s(self._last[BARE])),
            ADDED_CPU: lambda: self._us(self._last[OURS].cpu_s - self._last[BARE].cpu_s),
            PEER: lambda: self._us(read_s(self._run(PEER, run_peer))),
        }

    def _run(self, contender: str, run: Callable[[Place], Cost]) -> Cost:
        with Place(self._name) as place:
            self._last[contender] = run(place)
        return self._last[contender]

    def _us(self, seconds: float) -> float:
        return 1_000_000 * seconds / self._count


def measure(title: str, unit: str, contenders: Mapping[str, Callable[[], float]]) -> Measure:
    return Measure(
        part="turn",
        title=title,
        unit=unit,
        contenders=contenders,
        targets=(),
        ratios=((OURS, BARE), (PEER, BARE)),
        rounds=9,
        quick_rounds=3,
    )


def wall_s(cost: Cost) -> float:
    return cost.wall_s


def cpu_s(cost: Cost) -> float:
    return cost.cpu_s


MEASURES = (
    measure(
        f"{CHUNKS:,} chunks of a model, back to back",
        "µs a chunk",
        Comparison("chunks", CHUNKS).contenders(wall_s),
    ),
    measure(
        f"{PACED_CHUNKS:,} chunks of a model, 1 ms apart",
        "µs a chunk, processor",
        Comparison("paced", PACED_CHUNKS).contenders(cpu_s),
    ),
    measure(
        f"{CALLS} calls of a tool, one a reply",
        "µs a call",
        Comparison("calls", CALLS).contenders(wall_s),
    ),
)
