"""Running the contenders of a measure in turns."""

import os
import statistics
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from bench.measure import Measure, Missing


class Outcome(msgspec.Struct):
    """The result of one contender: its samples, or the reason why there are none."""

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
    """The lowest and the highest load of the machine, its own part included, at the beginning of each round."""

    def ratio(self, ours: str, theirs: str | None) -> float | None:
        """Return how the medians compare, or None when one of them is missing; beside nobody it is the median."""
        medians = {outcome.contender: outcome.median for outcome in self.outcomes if outcome.samples}
        if theirs is None:
            return medians.get(ours)
        return medians[ours] / medians[theirs] if {ours, theirs} <= medians.keys() else None


def run_rounds(measure: Measure, *, quick: bool, progress: Callable[[str], None]) -> Result:
    """Measure every contender once a round; the first round warms caches and bytecode, and is not counted."""
    outcomes = {name: Outcome(name) for name in measure.contenders}
    date, loads = now(), list[float]()
    rounds = measure.quick_rounds if quick else measure.rounds
    for number in range(rounds + 1):
        loads.append(round(os.getloadavg()[0], 1))
        for name, measure_once in measure.contenders.items():
            outcome = outcomes[name]
            if outcome.missing is not None:
                continue
            progress(f"{measure.title}: round {number} of {rounds}, {name}")
            try:
                sample = measure_once()
            except Missing as missing:
                outcome.missing = str(missing)
                continue
            if number > 0:
                outcome.samples.append(sample)
    return Result(measure, list(outcomes.values()), date, (min(loads), max(loads)))


def now() -> str:
    """Return the minute that it is."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
