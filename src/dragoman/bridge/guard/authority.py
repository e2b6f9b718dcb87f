"""Hosts and origins in one spelling, so that lists of them can be compared to the letter.

    host     localhost:8421   [::1]:8421   agents.example.org
    origin   http://localhost:8421   https://agents.example.org

What is no plain `name:port` or `scheme://name:port` has no spelling here, and so is on no list: names with a trailing
dot, with user information, with a path, with anything but ASCII. `null` is no origin.
"""

import ipaddress
import re
from typing import NamedTuple

DEFAULT_PORTS = {"http": 80, "https": 443}

_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9](?:[a-z0-9._-]{0,252}[a-z0-9])?)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"(https?)://(.+)")
_MAX_PORT = 65535


class Authority(NamedTuple):
    """A name, or an address, and a port where one was said."""

    name: str
    port: int | None

    def __str__(self) -> str:
        return self.name if self.port is None else f"{self.name}:{self.port}"


def parse_authority(text: str) -> Authority | None:
    """Read what a `Host` header has."""
    found = _HOST.fullmatch(text.lower()) if text.isascii() else None
    if found is None:
        return None
    name = _spell(found[1])
    port = None if found[2] is None else int(found[2])
    if name is None or (port is not None and not 0 < port <= _MAX_PORT):
        return None
    return Authority(name, port)


def spell_host(text: str) -> str | None:
    """Return the one spelling of a `Host` header; None when it has none."""
    found = parse_authority(text)
    return None if found is None else str(found)


def spell_origin(text: str) -> str | None:
    """Return the one spelling of an `Origin` header, without a port that goes without saying; None if it has none."""
    found = _ORIGIN.fullmatch(text.lower()) if text.isascii() else None
    authority = None if found is None else parse_authority(found[2])
    if found is None or authority is None:
        return None
    return make_origin(found[1], authority)


def make_origin(scheme: str, authority: Authority) -> str:
    """Return the origin of what is served there."""
    name, port = authority
    return f"{scheme}://{Authority(name, None if port == DEFAULT_PORTS[scheme] else port)}"


def spell_name(text: str) -> str | None:
    """Return a name or an address as a host has it, IPv6 in brackets; None when it is neither."""
    return spell_host(f"[{text}]" if ":" in text and not text.startswith("[") else text)


def _spell(name: str) -> str | None:
    if not name.startswith("["):
        return name
    try:
        return f"[{ipaddress.IPv6Address(name[1:-1])}]"
    except ValueError:
        return None
