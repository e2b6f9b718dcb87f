"""The addresses under which a bridge is served, and the policy that the guard follows.

Hosts and origins are compared as text, so each has one normal form:

    host     localhost:8421   [::1]:8421   agents.example.org
    origin   http://localhost:8421   https://agents.example.org

A text that is not a plain `name:port` or `scheme://name:port` has no normal form, and so is on no list: a name with a
trailing dot, with user information, with a path, with anything but ASCII. `null` is not an origin.
"""

import ipaddress
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from dragoman.bridge.guard.credentials import Token
from dragoman.errors import DragomanError

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


LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 -- compared with, not bound
DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9])?)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_MAX_PORT = 65535


# ── normal forms ─────────────────────────────────────────────────────────────────────────────────


class Authority(NamedTuple):
    """A name or an IP address, and a port if it was given (RFC 3986, 3.2)."""

    name: str
    port: int | None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"


def parse_authority(text: str) -> Authority | None:
    """Read the value of a `Host` header; None if it has no normal form."""
    found = _HOST.fullmatch(text.lower()) if text.isascii() else None
    if found is None:
        return None
    name = _normalize(found[1])
    port = None if found[2] is None else int(found[2])
    if name is None or (port is not None and not 0 < port <= _MAX_PORT):
        return None
    return Authority(name, port)


def normalize_host(text: str) -> str | None:
    """Return the normal form of a `Host` header; None if it has none."""
    found = parse_authority(text)
    return None if found is None else str(found)


def normalize_origin(text: str) -> str | None:
    """Return the normal form of an `Origin` header, without a default port; None if it has none."""
    found = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    authority = None if found is None else parse_authority(found[2])
    if found is None or authority is None:
        return None
    return make_origin(found[1], authority)


def make_origin(scheme: str, authority: Authority) -> str:
    """Return the origin of a page that is served there."""
    name, port = authority
    return f"{scheme}://{Authority(name, None if port == DEFAULT_PORTS[scheme] else port)}"


def normalize_name(text: str) -> str | None:
    """Return a name or an IP address as in a `Host` header, IPv6 in brackets; None if it is neither."""
    return normalize_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)


def _normalize(name: str) -> str | None:
    if not name.startswith("["):
        return name
    try:
        return f"[{ipaddress.IPv6Address(name[1:-1])}]"
    except ValueError:
        return None


# ── the policy ───────────────────────────────────────────────────────────────────────────────────


class BadServedAddress(DragomanError):
    """A host, an origin or a public address that a bridge cannot be served under."""


class GuardPolicy(msgspec.Struct, frozen=True):
    """The token, hosts, origins and rates by which a guard decides."""

    token: Token
    port: int
    """Part of the cookie's name, because browsers keep the cookies of all ports of a host together."""
    hosts: frozenset[str]
    origins: frozenset[str]
    is_secure: bool = False
    """Whether browsers reach it by https only, so that the cookie can be restricted to https."""
    failures: Rate = Rate(burst=10, per_s=0.2)
    """Invalid tokens, codes and cookies of one address. A valid one is accepted all the same: neither a neighbour at
    the same address nor a page in the owner's browser can lock the owner out, and nobody guesses 256 bits."""
    anonymous: Rate = Rate(burst=2_000, per_s=100.0)
    """Requests without a credential: the page and its files, some fifty for each time that it is opened."""
    admitted: Rate = Rate(burst=20_000, per_s=5_000.0)
    """Requests with a valid credential: more than this process can answer, so it stops only a runaway program."""


def make_policy(
    token: Token,
    *,
    names: Iterable[str],
    port: int,
    is_tls: bool = False,
    allow_hosts: Iterable[str] = (),
    allow_origins: Iterable[str] = (),
    public_url: str | None = None,
) -> GuardPolicy:
    """Make the policy of a bridge that listens at a port under these names; raises BadServedAddress."""
    scheme = "https" if is_tls else "http"
    served = [_served(name, port) for name in names] + [_allowed(text, port) for text in allow_hosts]
    hosts = {form for authority in served for form in _forms(scheme, authority)}
    origins = {make_origin(scheme, authority) for authority in served} | {_origin(text) for text in allow_origins}
    public_scheme = scheme
    if public_url is not None:
        public_scheme, authority = split_public_url(public_url)
        hosts.update(_forms(public_scheme, authority))
        origins.add(make_origin(public_scheme, authority))
    return GuardPolicy(
        token=token,
        port=port,
        hosts=frozenset(hosts),
        origins=frozenset(origins),
        is_secure=public_scheme == "https",
    )


def served_names(host: str) -> tuple[str, ...]:
    """Return the names of a bridge that listens at this host; raises BadServedAddress."""
    name = normalize_name(host)
    if name is None:
        raise BadServedAddress(
            f"{host!r} is not a host; expected a name or an address, such as 127.0.0.1, localhost or ::1"
        )
    return LOOPBACK_NAMES if name in ANY_ADDRESS or is_loopback(name) else (name,)


def is_loopback(name: str) -> bool:
    """Tell whether a host can be reached from this machine only."""
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def split_public_url(url: str) -> tuple[str, Authority]:
    """Return the scheme, name and port of the address that people open; raises BadServedAddress."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    authority = parse_authority(parts.netloc)
    if parts.scheme not in DEFAULT_PORTS or authority is None or parts.query or parts.fragment:
        raise BadServedAddress(
            f"{url!r} is not a public address; expected one such as https://agents.example.org/dragoman/"
        )
    return parts.scheme, authority


def _served(name: str, port: int) -> Authority:
    found = normalize_name(name)
    if found is None:
        raise BadServedAddress(f"{name!r} is not the name of a host")
    return Authority(found, port)


def _allowed(text: str, port: int) -> Authority:
    found = parse_authority(normalize_name(text) or text)
    if found is None:
        raise BadServedAddress(f"{text!r} is not a host; expected NAME or NAME:PORT, without scheme, path or wildcard")
    return found if found.port is not None else Authority(found.name, port)


def _origin(text: str) -> str:
    found = normalize_origin(text)
    if found is None:
        raise BadServedAddress(
            f"{text!r} cannot be allowed as an origin; expected SCHEME://NAME or SCHEME://NAME:PORT, without path or "
            "wildcard; `null` is the origin of every sandboxed page, so it is never allowed"
        )
    return found


def _forms(scheme: str, authority: Authority) -> Iterator[str]:
    """Yield the forms of a host: with and without its port, if that is the default one."""
    default = DEFAULT_PORTS[scheme]
    yield str(authority)
    if authority.port == default:
        yield authority.name
    elif authority.port is None:
        yield f"{authority.name}:{default}"
