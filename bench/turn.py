"""The cost of a turn on top of the bare model library: per streamed chunk, and per tool call.

All contenders prompt the same loopback provider twice, and the second time counts. A raw reader reads the agents, and
ours writes its log. Our part is shown twice, from the same runs: as elapsed time, which a busy machine distorts, and as
CPU time, which hides waiting. Chunks that arrive one by one leave time to idle, so only the CPU time counts there.
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
from bench.measure import Measure, MissingError
from bench.openai_server import openai_server
from bench.raw_agent import RawAgent
from bench.size import size

CHUNKS = size(5_000, 50)
PACED_CHUNKS = size(2_000, 20)
CALLS = size(40, 2)
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
    """The cost of a turn: elapsed time and CPU time."""

    wall_s: float
    cpu_s: float


class Place:
    """A directory with a tiny file, a provider, and the prompt."""

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
        raise MissingError(f"it does not run: {error}") from error


def time_second_turn(command: Command, place: Place, environment: Mapping[str, str]) -> Cost:
    """Prompt twice, in separate sessions, and return the cost of the second turn. Raises RuntimeError on failure."""
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
    """Runs each contender in a separate place, and keeps their last costs to compute our part."""

    def __init__(self, kind: str, count: int) -> None:
        self._name = f"{kind}-{count}"
        self._count = count
        self._last: dict[str, Cost] = {}

    def contenders(self, read_s: Callable[[Cost], float]) -> dict[str, Callable[[], float]]:
        """Return the contenders that run, and after each pair our part, which is the difference of the two."""
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
