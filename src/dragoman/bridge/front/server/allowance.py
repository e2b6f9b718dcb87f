"""How much a connection may send that carries nothing: an amount at once, and more as time passes or work is done."""

import time
from collections.abc import Callable

from dragoman.bridge.guard.rates import Rate


class Allowance:
    """Pays for control frames, empty frames and fragments; a connection that has none left is cut."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate.burst)
        self._seen = clock()

    def take(self, cost: int) -> bool:
        """Pay for something; tells whether there was enough left."""
        if cost > self._left:
            now = self._clock()
            self._left = min(self._rate.burst, self._left + (now - self._seen) * self._rate.per_s)
            self._seen = now
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def earn(self, amount: int) -> None:
        """Get something back for frames of ours that the other side has to answer."""
        self._left = min(self._rate.burst, self._left + amount)

    def widen(self, rate: Rate) -> None:
        """Have a higher rate from now on, and all that it gives at once; the second time this changes nothing."""
        if rate is self._rate:
            return
        self._rate = rate
        self._left = float(rate.burst)
        self._seen = self._clock()
