"""The table of what was understood, while it is written."""

from collections.abc import Callable
from typing import TypeVar

from dragoman.agent.profile.understood import UnderstoodKey

N = TypeVar("N", int, float)


class UnderstoodTable:
    """Rows in the order in which the keys were looked at."""

    def __init__(self) -> None:
        self.rows: list[UnderstoodKey] = []

    def take(self, key: str, meaning: str) -> None:
        """Note that a key counts."""
        self.rows.append(UnderstoodKey(key, meaning))

    def leave(self, key: str, reason: str) -> None:
        """Note that a key does not count."""
        self.rows.append(UnderstoodKey(key, reason, taken=False))

    def number(
        self, key: str, value: float | str | None, kind: Callable[[float], N], least: N, meaning: str
    ) -> N | None:
        """Return a number that may stand there as a text, or note that it is none."""
        if value is None:
            return None
        try:
            number = kind(float(value))
        except (ValueError, OverflowError):
            self.leave(key, "it is no number")
            return None
        if not number >= least:
            self.leave(key, f"it is less than {least}")
            return None
        self.take(key, meaning)
        return number
