"""Under which names a bridge is served, and what it takes to get in."""

import ipaddress
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit

import msgspec

from dragoman.bridge.guard.authority import (
    DEFAULT_PORTS,
    Authority,
    make_origin,
    parse_authority,
    spell_name,
    spell_origin,
)
from dragoman.bridge.guard.rates import Rate
from dragoman.bridge.guard.token import Token
from dragoman.errors import DragomanError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 -- compared with, not bound


class BadAddress(DragomanError):
    """A host, an origin or an address cannot be put on the list."""


class GuardPolicy(msgspec.Struct, frozen=True):
    """What a guard goes by."""

    token: Token
    port: int
    """In the cookie's name, for browsers keep the cookies of all ports of a host together."""
    hosts: frozenset[str]
    origins: frozenset[str]
    is_secure: bool = False
    """Whether browsers reach it by https alone, and so the cookie may say that it is for https."""
    failures: Rate = Rate(burst=10, per_s=0.2)
    """Wrong tokens, codes and cookies. What is right is let in all the same: no neighbour at the same address, and no
    page in the owner's browser, can shut the owner out by failing for them; and nobody guesses 256 bits."""
    strangers: Rate = Rate(burst=2_000, per_s=100.0)
    """Requests without a credential: the page and its files, some fifty for each time that it is opened."""
    guests: Rate = Rate(burst=20_000, per_s=5_000.0)
    """Requests of those who were let in: more than this process can answer, so it stops only a runaway."""


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
    """Make the lists for a bridge that listens at a port under these names; raises BadAddress."""
    scheme = "https" if is_tls else "http"
    served = [_served(name, port) for name in names] + [_allowed(text, port) for text in allow_hosts]
    hosts = {spelling for authority in served for spelling in _spellings(scheme, authority)}
    origins = {make_origin(scheme, authority) for authority in served} | {_origin(text) for text in allow_origins}
    public_scheme = scheme
    if public_url is not None:
        public_scheme, authority = split_url(public_url)
        hosts.update(_spellings(public_scheme, authority))
        origins.add(make_origin(public_scheme, authority))
    return GuardPolicy(
        token=token,
        port=port,
        hosts=frozenset(hosts),
        origins=frozenset(origins),
        is_secure=public_scheme == "https",
    )


def names_of(host: str) -> tuple[str, ...]:
    """Return the names that go without saying for a bridge that listens at this host."""
    name = spell_name(host)
    if name is None:
        raise BadAddress(f"{host!r} is no host; expected a name or an address, such as 127.0.0.1, localhost or ::1")
    return LOOPBACK_NAMES if name in ANY_ADDRESS or is_loopback(name) else (name,)


def is_loopback(name: str) -> bool:
    """Say whether nobody outside this machine gets to this host."""
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def split_url(url: str) -> tuple[str, Authority]:
    """Return the scheme, name and port of an address that people open; raises BadAddress."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    authority = parse_authority(parts.netloc)
    if parts.scheme not in DEFAULT_PORTS or authority is None or parts.query or parts.fragment:
        raise BadAddress(f"{url!r} is no public address; expected one such as https://agents.example.org/dragoman/")
    return parts.scheme, authority


def _served(name: str, port: int) -> Authority:
    found = spell_name(name)
    if found is None:
        raise BadAddress(f"{name!r} is no name of a host")
    return Authority(found, port)


def _allowed(text: str, port: int) -> Authority:
    found = parse_authority(spell_name(text) or text)
    if found is None:
        raise BadAddress(f"{text!r} is no host; expected NAME or NAME:PORT, without scheme, path or wildcard")
    return found if found.port is not None else Authority(found.name, port)


def _origin(text: str) -> str:
    found = spell_origin(text)
    if found is None:
        raise BadAddress(
            f"{text!r} is no origin that can be allowed; expected SCHEME://NAME or SCHEME://NAME:PORT, without path or "
            "wildcard; `null` is what every sandboxed page says, so it is never allowed"
        )
    return found


def _spellings(scheme: str, authority: Authority) -> Iterator[str]:
    """Give both ways to say a host whose port goes without saying."""
    default = DEFAULT_PORTS[scheme]
    yield str(authority)
    if authority.port == default:
        yield authority.name
    elif authority.port is None:
        yield f"{authority.name}:{default}"
