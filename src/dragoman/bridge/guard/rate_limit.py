"""Rate limits: token buckets, one per client address."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

MAX_PEERS = 4096
"""Addresses that are stored. Another one removes the least recently seen address."""

_IPV6_BITS = 64
"""Providers assign a whole network of this size to one customer, so it counts as one address."""

Clock = Callable[[], float]


class Rate(msgspec.Struct, frozen=True):
    """A number of events at once, and a number of events per second after that."""

    burst: int
    per_s: float


class TokenBucket:
    """Limits events to a rate. The bucket starts full, and is refilled over time or by `add`."""

    def __init__(self, rate: Rate, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate.burst)
        self._filled_at = clock()

    def acquire(self, cost: int = 1) -> bool:
        """Remove `cost` tokens if there are enough. Return whether there were."""
        if not cost:
            return True  # true for most frames of a connection, which then do not read the clock
        self._fill()
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def wait_s(self) -> float:
        """Return the seconds until one token is available."""
        self._fill()
        return max(0.0, (1 - self._left) / self._rate.per_s)

    def add(self, amount: int) -> None:
        """Add tokens, up to the burst."""
        self._left = min(self._rate.burst, self._left + amount)

    def change_rate(self, rate: Rate) -> None:
        """Set another rate and fill the bucket. The same rate changes nothing."""
        if rate is self._rate:
            return
        self._rate = rate
        self._left = float(rate.burst)
        self._filled_at = self._clock()

    def _fill(self) -> None:
        now = self._clock()
        self._left = min(self._rate.burst, self._left + (now - self._filled_at) * self._rate.per_s)
        self._filled_at = now


class RateLimiter:
    """Applies one rate to each address separately."""

    def __init__(self, rate: Rate, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def acquire(self, peer: str) -> float:
        """Count one event and return 0. Beyond the rate, return the seconds to wait instead."""
        bucket = self._buckets.pop(peer, None) or TokenBucket(self._rate, self._clock)
        self._buckets[peer] = bucket
        if len(self._buckets) > MAX_PEERS:
            self._buckets.popitem(last=False)
        return 0.0 if bucket.acquire() else bucket.wait_s()


def peer_of(address: str) -> str:
    """Return the key for an address: the address itself, or its network for IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_BITS), strict=False))
