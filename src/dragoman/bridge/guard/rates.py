"""How often somebody may come: a bucket of tries for each address, that fills again at a steady rate."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

MAX_PEERS = 4096
"""Addresses that are remembered; the one that was not seen for longest is forgotten."""

_IPV6_BITS = 64
"""One customer has a whole network of this size, so it counts as one address."""


class Rate(msgspec.Struct, frozen=True):
    """So many at once, and so many a second after that."""

    burst: int
    per_s: float


class Limiter:
    """One rate, counted for each address apart."""

    def __init__(self, rate: Rate, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, peer: str) -> float:
        """Count one more and return 0; or return how many seconds to wait, and count nothing."""
        now = self._clock()
        left, seen = self._buckets.pop(peer, (float(self._rate.burst), now))
        left = min(self._rate.burst, left + (now - seen) * self._rate.per_s)
        wait_s = 0.0 if left >= 1 else (1 - left) / self._rate.per_s
        self._buckets[peer] = (left if wait_s else left - 1, now)
        if len(self._buckets) > MAX_PEERS:
            self._buckets.popitem(last=False)
        return wait_s


def name_peer(address: str) -> str:
    """Return what an address is counted as."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_BITS), strict=False))
