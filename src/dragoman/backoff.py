"""Exponential backoff: pauses between attempts, each twice as long as the one before."""


class Backoff:
    """The sequence of pauses, from the first to the longest."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._next_s = min(first_s, longest_s)

    def reset(self) -> None:
        """Restart with the first pause, after a success."""
        self._next_s = min(self._first_s, self._longest_s)

    def next_s(self) -> float:
        """Return the length of the next pause."""
        pause_s = self._next_s
        self._next_s = min(2 * pause_s, self._longest_s)
        return pause_s
