"""The cost of `dragoman tap` in a conversation, compared with the smallest proxies: two Python threads, and `cat`.

An agent streams messages of 227 bytes to a client: 20,000 per second, like a real and very fast agent, and as fast as
it can. Then single requests are sent in both directions.
"""

import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path

from bench import commands
from bench.client_run import run_reporter
from bench.commands import Command
from bench.measure import Measure, Target
from bench.size import size

RATE = 20_000
PACED_MESSAGES = size(40_000, 200)
MESSAGES = size(400_000, 500)
DONE_MESSAGES = size(100_000, 200)
"""A number of messages that a tap always keeps in memory, so that it omits none."""

PINGS = size(2_000, 20)

DIRECT = "no proxy"
CAT = "cat"
PYTHON = "a pump in Python"
RECORDING = "tap, recording"
JUDGING = "tap, judging live"
BOTH = "tap, both"

CLIENT = commands.python("tap_client.py")


def agent(count: int, rate: int) -> Command:
    return (*commands.python("tap_agent.py"), str(count), str(rate))


def behind_cat(behind: Command) -> Command:
    return ("sh", "-c", f"cat | {shlex.join(behind)} | cat")


def behind_python(behind: Command) -> Command:
    return (*commands.python("pipe_proxy.py"), *behind)


def behind_tap(*options: str) -> Callable[[Command], Command]:
    return lambda behind: (*commands.dragoman("tap", *options), "--", *behind)


def run(proxy: Callable[[Command], Command], options: Command, behind: Command, figure: str) -> float:
    """Measure once, with a directory for the recording."""
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "out.jsonl")
        command = tuple(out if part == "OUT" else part for part in proxy(behind))
        return run_reporter((*CLIENT, *options, "--", *command))[figure]


PROXIES: dict[str, Callable[[Command], Command]] = {
    DIRECT: lambda behind: behind,
    CAT: behind_cat,
    PYTHON: behind_python,
    RECORDING: behind_tap("--record", "OUT", "--record-only"),
    JUDGING: behind_tap("--live"),
    BOTH: behind_tap("--record", "OUT", "--live"),
}


def streams(count: int, rate: int, figure: str = "messages_per_s") -> dict[str, Callable[[], float]]:
    """Return, for each proxy, a function that measures thousands of messages per second through it."""
    options = ("--messages", str(count))
    return {
        name: lambda proxy=proxy: run(proxy, options, agent(count, rate), figure) / 1000
        for name, proxy in PROXIES.items()
    }


def pings() -> dict[str, Callable[[], float]]:
    options = ("--pings", str(PINGS))
    return {
        name: lambda proxy=proxy: run(proxy, options, agent(0, 0), "round_trip_us") for name, proxy in PROXIES.items()
    }


MEASURES = (
    Measure(
        part="tap",
        title="20,000 messages a second through a proxy",
        unit="k msg/s",
        contenders=streams(PACED_MESSAGES, RATE),
        targets=(
            Target(RECORDING, PYTHON, "at least", 0.995),
            Target(JUDGING, PYTHON, "at least", 0.95),
            Target(BOTH, PYTHON, "at least", 0.95),
        ),
        rounds=5,
        quick_rounds=3,
    ),
    Measure(
        part="tap",
        title="400,000 messages through a proxy, as fast as it goes",
        unit="k msg/s",
        contenders=streams(MESSAGES, 0),
        targets=(),
        ratios=((RECORDING, PYTHON), (JUDGING, PYTHON), (BOTH, PYTHON), (PYTHON, CAT)),
        rounds=5,
        quick_rounds=3,
    ),
    Measure(
        part="tap",
        title="100,000 messages, until the last is recorded or judged and all have ended",
        unit="k msg/s",
        contenders=streams(DONE_MESSAGES, 0, "done_per_s"),
        targets=(),
        rounds=5,
        quick_rounds=3,
    ),
    Measure(
        part="tap",
        title="a request and its answer through a proxy",
        unit="µs",
        contenders=pings(),
        targets=(),
        ratios=((RECORDING, PYTHON), (JUDGING, PYTHON), (PYTHON, CAT)),
        rounds=5,
        quick_rounds=3,
    ),
)
