"""The policy that the guard follows: the token, and the hosts, origins and rates of a bridge."""

from collections.abc import Iterable, Iterator
from hashlib import sha256
from urllib.parse import urlsplit

import msgspec

from dragoman.bridge.guard.credentials import Token
from dragoman.bridge.guard.origin import (
    DEFAULT_PORTS,
    Authority,
    is_loopback,
    make_origin,
    normalize_name,
    normalize_origin,
    parse_authority,
)
from dragoman.bridge.guard.rate_limit import Rate
from dragoman.errors import DragomanError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
ANY_ADDRESS = ("0.0.0.0", "[::]")  # noqa: S104 -- compared with, not bound

_PATH_DIGITS = 8


class BadServedAddress(DragomanError):
    """A host, an origin or a public address that a bridge cannot be served under."""


class GuardPolicy(msgspec.Struct, frozen=True):
    """The token, hosts, origins and rates by which a guard decides."""

    token: Token
    cookie_place: str
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
    public_scheme, cookie_place = scheme, str(port)
    if public_url is not None:
        public_scheme, authority = split_public_url(public_url)
        cookie_place = _public_place(public_url)
        hosts.update(_forms(public_scheme, authority))
        origins.add(make_origin(public_scheme, authority))
    return GuardPolicy(
        token=token,
        cookie_place=cookie_place,
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


def _public_place(url: str) -> str:
    """Tell the address that people open from others of its host, in the same words at every node behind it."""
    scheme, authority = split_public_url(url)
    path = urlsplit(url).path.strip("/")
    port = authority.port or DEFAULT_PORTS[scheme]
    return f"{port}_{sha256(path.encode()).hexdigest()[:_PATH_DIGITS]}" if path else f"{port}"


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
