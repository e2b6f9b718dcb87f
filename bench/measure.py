"""A measure: the contenders, the unit, and the target."""

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

PYTHON_SDK = "Python SDK"
TYPESCRIPT_SDK = "TypeScript SDK"


class Missing(Exception):
    """A contender cannot run here; the message says why."""


class Target(msgspec.Struct, frozen=True):
    """The ratio of `ours` to `theirs` that we aim at; `theirs` is None when the figure itself is aimed at."""

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
    """One part of the table; each contender is a function that measures once and raises Missing if it cannot."""

    part: str
    title: str
    unit: str
    contenders: Mapping[str, Callable[[], float]]
    targets: tuple[Target, ...]
    rounds: int
    quick_rounds: int
    ratios: tuple[tuple[str, str], ...] = ()
    """Contenders whose ratio is shown without being aimed at."""
