"""Rates, and the addresses that they are counted for: token buckets, one for each address."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

MAX_PEERS = 4096
"""Addresses that are remembered; a further one removes the address that was not seen for longest."""

_IPV6_BITS = 64
"""One customer has a whole network of this size, so it counts as one address."""

Clock = Callable[[], float]


class Rate(msgspec.Struct, frozen=True):
    """So many at once, and so many a second after that."""

    burst: int
    per_s: float


class TokenBucket:
    """Pays for events at a rate: full at first, and filled again as time passes or by `add`."""

    def __init__(self, rate: Rate, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._left = float(rate.burst)
        self._filled_at = clock()

    def take(self, cost: int = 1) -> bool:
        """Pay the cost if there is enough; tells whether there was."""
        if not cost:
            return True  # most frames of a connection: they do not even read the clock
        self._fill()
        if cost > self._left:
            return False
        self._left -= cost
        return True

    def wait_s(self) -> float:
        """Return the seconds until one event can be paid."""
        self._fill()
        return max(0.0, (1 - self._left) / self._rate.per_s)

    def add(self, amount: int) -> None:
        """Put something back, up to the burst."""
        self._left = min(self._rate.burst, self._left + amount)

    def change_rate(self, rate: Rate) -> None:
        """Take another rate and fill the bucket; the rate that it has already changes nothing."""
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
    """One rate, counted for each address apart."""

    def __init__(self, rate: Rate, clock: Clock = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, peer: str) -> float:
        """Count one event and return 0; or return how many seconds to wait, and count nothing."""
        bucket = self._buckets.pop(peer, None) or TokenBucket(self._rate, self._clock)
        self._buckets[peer] = bucket
        if len(self._buckets) > MAX_PEERS:
            self._buckets.popitem(last=False)
        return 0.0 if bucket.take() else bucket.wait_s()


def peer_of(address: str) -> str:
    """Return the peer that an address belongs to: the address itself, or its network under IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_BITS), strict=False))
