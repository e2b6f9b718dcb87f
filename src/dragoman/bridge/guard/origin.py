"""Host and Origin: their normal forms, and the checks against the lists of a bridge.

Hosts and origins are compared as text, so each has one normal form:

    host     localhost:8421   [::1]:8421   agents.example.org
    origin   http://localhost:8421   https://agents.example.org

A text that is not a plain `name:port` or `scheme://name:port` has no normal form and is therefore on no list. Examples
are a trailing dot, user information, a path, and characters outside ASCII. `null` is not an origin.
"""

import ipaddress
import re
from collections.abc import Collection
from typing import NamedTuple

from dragoman.bridge.guard.answers import AccessDenial

DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9])?)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_MAX_PORT = 65535


def check_host(text: str, hosts: Collection[str]) -> AccessDenial | None:
    """Refuse a `Host` that is not on the list, such as a foreign name rebound to this machine (DNS rebinding)."""
    if normalize_host(text) in hosts:
        return None
    return AccessDenial(
        403,
        "this bridge is not served under that name; if the name is yours, start it with `--allow-host` and "
        "the Host that the browser or the proxy sends",
    )


def check_origin(text: str | None, origins: Collection[str]) -> AccessDenial | None:
    """Refuse an `Origin` that is not on the list, such as a foreign page or `null`. Programs send none."""
    if text is None or normalize_origin(text) in origins:
        return None
    return AccessDenial(
        403,
        "pages of that origin may not use this bridge; if the page is yours, start it with `--allow-origin` "
        "and its scheme, name and port",
    )


class Authority(NamedTuple):
    """A name or an IP address, with an optional port (RFC 3986, 3.2)."""

    name: str
    port: int | None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"


def parse_authority(text: str) -> Authority | None:
    """Parse the value of a `Host` header. Return None if it has no normal form."""
    found = _HOST.fullmatch(text.lower()) if text.isascii() else None
    if found is None:
        return None
    name = _normalize(found[1])
    port = None if found[2] is None else int(found[2])
    if name is None or (port is not None and not 0 < port <= _MAX_PORT):
        return None
    return Authority(name, port)


def normalize_host(text: str) -> str | None:
    """Return the normal form of a `Host` header, or None."""
    found = parse_authority(text)
    return None if found is None else str(found)


def normalize_origin(text: str) -> str | None:
    """Return the normal form of an `Origin` header, without a default port, or None."""
    found = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    authority = None if found is None else parse_authority(found[2])
    if found is None or authority is None:
        return None
    return make_origin(found[1], authority)


def make_origin(scheme: str, authority: Authority) -> str:
    """Return the origin of a scheme and an authority."""
    name, port = authority
    return f"{scheme}://{Authority(name, None if port == DEFAULT_PORTS[scheme] else port)}"


def normalize_name(text: str) -> str | None:
    """Return a name or IP address in the form of a `Host` header, with IPv6 in brackets, or None."""
    return normalize_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)


def _normalize(name: str) -> str | None:
    if not name.startswith("["):
        return name
    try:
        return f"[{ipaddress.IPv6Address(name[1:-1])}]"
    except ValueError:
        return None


def is_loopback(name: str) -> bool:
    """Return whether a host can be reached only from this machine."""
    try:
        return name == "localhost" or ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False
