"""The guard's policy: the token, hosts, origins and rates of a bridge."""

from collections.abc import Collection, Iterable, Iterator
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


class InvalidServedAddressError(DragomanError):
    """A host, an origin or a public URL that cannot be used for a bridge."""


class GuardPolicy(msgspec.Struct, frozen=True):
    """The token, hosts, origins and rates that a guard checks."""

    token: Token
    cookie_place: str
    """Part of the cookie's name, because browsers share cookies between all ports of a host."""
    hosts: frozenset[str]
    origins: frozenset[str]
    """Origins whose pages may send requests with the token, or with the cookie to the path for panels."""
    own_origins: frozenset[str]
    """The origins of the bridge itself. Their pages may use the cookie for every path."""
    is_secure: bool = False
    """Whether browsers use only https, so that the cookie can be restricted to https."""
    failures: Rate = Rate(burst=10, per_s=0.2)
    """Invalid tokens, codes and cookies of one address. A valid credential is accepted even beyond this rate.
    Otherwise a neighbor at the same address, or a page in the owner's browser, could lock the owner out."""
    anonymous: Rate = Rate(burst=2_000, per_s=100.0)
    """Requests without a credential: the page and its files, about fifty per visit."""
    admitted: Rate = Rate(burst=20_000, per_s=5_000.0)
    """Requests with a valid credential, per address or share. This process cannot answer as many, so the limit stops
    only runaway programs."""


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
    """Return the policy of a bridge with this port and these names. Raises InvalidServedAddressError."""
    # `hosts` are the accepted Host headers, `own_origins` the origins of the bridge's page under these hosts. A proxy
    # adds its public URL to both.
    scheme = "https" if is_tls else "http"
    served = [_served(name, port) for name in names] + [_allowed(text, port) for text in allow_hosts]
    hosts = {form for authority in served for form in _forms(scheme, authority)}
    own_origins = {make_origin(scheme, authority) for authority in served}
    public_scheme, cookie_place = scheme, str(port)
    if public_url is not None:
        public_scheme, authority = split_public_url(public_url)
        cookie_place = _public_place(public_url)
        hosts.update(_forms(public_scheme, authority))
        own_origins.add(make_origin(public_scheme, authority))
    allowed = {_origin(text) for text in allow_origins}
    own_origins.update(origin for origin in allowed if _is_at(origin, hosts))
    return GuardPolicy(
        token=token,
        cookie_place=cookie_place,
        hosts=frozenset(hosts),
        origins=frozenset(own_origins | allowed),
        own_origins=frozenset(own_origins),
        is_secure=public_scheme == "https",
    )


def served_names(host: str) -> tuple[str, ...]:
    """Return the names of a bridge that listens on this host. Raises InvalidServedAddressError."""
    name = normalize_name(host)
    if name is None:
        raise InvalidServedAddressError(
            f"{host!r} is not a host; expected a name or an address, such as 127.0.0.1, localhost or ::1"
        )
    return LOOPBACK_NAMES if name in ANY_ADDRESS or is_loopback(name) else (name,)


def split_public_url(url: str) -> tuple[str, Authority]:
    """Return the scheme and authority of the public URL. Raises InvalidServedAddressError."""
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    authority = parse_authority(parts.netloc)
    if parts.scheme not in DEFAULT_PORTS or authority is None or parts.query or parts.fragment:
        raise InvalidServedAddressError(
            f"{url!r} is not a public address; expected one such as https://agents.example.org/dragoman/"
        )
    return parts.scheme, authority


def _public_place(url: str) -> str:
    """Return a text that identifies the public URL among all URLs of its host. It is the same on every node."""
    scheme, authority = split_public_url(url)
    path = urlsplit(url).path.strip("/")
    port = authority.port or DEFAULT_PORTS[scheme]
    return f"{port}_{sha256(path.encode()).hexdigest()[:_PATH_DIGITS]}" if path else f"{port}"


def _served(name: str, port: int) -> Authority:
    found = normalize_name(name)
    if found is None:
        raise InvalidServedAddressError(f"{name!r} is not a host name")
    return Authority(found, port)


def _allowed(text: str, port: int) -> Authority:
    found = parse_authority(normalize_name(text) or text)
    if found is None:
        raise InvalidServedAddressError(
            f"{text!r} is not a host; expected NAME or NAME:PORT, without scheme, path or wildcard"
        )
    return found if found.port is not None else Authority(found.name, port)


def _origin(text: str) -> str:
    found = normalize_origin(text)
    if found is None:
        raise InvalidServedAddressError(
            f"{text!r} cannot be allowed as an origin; expected SCHEME://NAME or SCHEME://NAME:PORT, without path or "
            "wildcard; `null` is the origin of every sandboxed page, so it is never allowed"
        )
    return found


def _is_at(origin: str, hosts: Collection[str]) -> bool:
    """Return whether an origin is at one of these hosts."""
    scheme, _, rest = origin.partition("://")
    authority = parse_authority(rest)
    return authority is not None and any(form in hosts for form in _forms(scheme, authority))


def _forms(scheme: str, authority: Authority) -> Iterator[str]:
    """Yield the forms of a host: with its port, and without it if it is the default port."""
    default = DEFAULT_PORTS[scheme]
    yield str(authority)
    if authority.port == default:
        yield authority.name
    elif authority.port is None:
        yield f"{authority.name}:{default}"
