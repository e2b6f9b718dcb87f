"""A measure: its contenders, its unit and its target."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

PYTHON_SDK = "Python SDK"
TYPESCRIPT_SDK = "TypeScript SDK"


class MissingError(Exception):
    """A contender cannot run here. The message says why."""


class Target(msgspec.Struct, frozen=True):
    """The target ratio of `ours` to `theirs`. If `theirs` is None, the target is the figure of `ours`."""

    ours: str
    theirs: str | None
    relation: Literal["at most", "at least"]
    ratio: float

    @property
    def text(self) -> str:
        sign = "≤" if self.relation == "at most" else "≥"
        return f"{sign} {self.ratio:.2f}"

    def is_reached(self, ratio: float) -> bool:
        return ratio <= self.ratio if self.relation == "at most" else ratio >= self.ratio


class Measure(msgspec.Struct, frozen=True):
    """One part of the table. A contender is a function that measures once and raises MissingError if it cannot run."""

    part: str
    title: str
    unit: str
    contenders: Mapping[str, Callable[[], float]]
    targets: tuple[Target, ...]
    rounds: int
    quick_rounds: int
    ratios: tuple[tuple[str, str], ...] = ()
    """Contenders whose ratio is shown without a target."""
