"""Runs the contenders of a measure in turns."""

import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from bench.measure import Measure, MissingError

LOAD_SAMPLES = 40
SAMPLE_PAUSE_S = 0.01


class Outcome(msgspec.Struct):
    """The result of one contender: its samples, or the reason why it has none."""

    contender: str
    samples: list[float] = []
    missing: str | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.samples)


class Result(msgspec.Struct):
    """A measure and its outcomes, in the order of the contenders."""

    measure: Measure
    outcomes: list[Outcome]
    date: str
    """The minute in which it began."""
    loads: tuple[float, float]
    """The lowest and the highest load by other programs, at the start of each round."""

    def ratio(self, ours: str, theirs: str | None) -> float | None:
        """Return the ratio of the medians, or None if one is missing. Without another contender, return the median."""
        medians = {outcome.contender: outcome.median for outcome in self.outcomes if outcome.samples}
        if theirs is None:
            return medians.get(ours)
        return medians[ours] / medians[theirs] if {ours, theirs} <= medians.keys() else None


def run_rounds(measure: Measure, *, quick: bool, progress: Callable[[str], None]) -> Result:
    """Measure every contender once per round. The first round warms caches and bytecode, and does not count."""
    outcomes = {name: Outcome(name) for name in measure.contenders}
    date, loads = now(), list[float]()
    rounds = measure.quick_rounds if quick else measure.rounds
    for number in range(rounds + 1):
        loads.append(round(read_load(), 1))
        for name, measure_once in measure.contenders.items():
            outcome = outcomes[name]
            if outcome.missing is not None:
                continue
            progress(f"{measure.title}: round {number} of {rounds}, {name}")
            try:
                sample = measure_once()
            except MissingError as missing:
                outcome.missing = str(missing)
                continue
            if number > 0:
                outcome.samples.append(sample)
    return Result(measure, list(outcomes.values()), date, (min(loads), max(loads)))


def read_load() -> float:
    """Return the number of tasks of other programs that run or wait for a core.

    The load average would include our own contenders of the last minute.
    """
    tasks = Path("/proc/loadavg")
    if not tasks.exists():
        return os.getloadavg()[0]
    running: list[int] = []
    for _ in range(LOAD_SAMPLES):
        time.sleep(SAMPLE_PAUSE_S)
        running.append(int(tasks.read_text().split()[3].partition("/")[0]) - 1)  # excludes this process
    return statistics.fmean(running)


def now() -> str:
    """Return the current minute."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
