"""Finds the bridge that runs with a home, for other commands with the same home.

While it serves, `dragoman serve` holds a lock on `<home>/bridge/address`, which contains its URL. The URL is valid only
while the lock is held, because after a crash another user's process may listen on that port. The home's token is
therefore sent to exactly this address and to no other.
"""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from dragoman.files.private_file import PrivateFile
from dragoman.protocol.address import Address, InvalidAddressError
from dragoman.store.lock import Lock, acquire, find_holder

ADDRESS_FILE = "address"
TOKEN_FILE = "token"  # noqa: S105 -- the name of the file

_LOCALHOST = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")


class RunningBridge(msgspec.Struct, frozen=True):
    """A running bridge."""

    url: str
    """The URL of the bridge, with a slash at the end."""
    directory: Path

    def acp_url(self, agent: str | None = None) -> str:
        """Return the address of an agent, by default the first one."""
        return f"{self.url}acp/{agent}" if agent else f"{self.url}acp"

    def match(self, url: str) -> str | None:
        """Return a URL of this bridge with `localhost` replaced by its address, or None for any other URL."""
        try:
            asked, own = Address.parse(url), Address.parse(self.url)
        except InvalidAddressError:
            return None
        if (asked.is_secure, asked.port) != (own.is_secure, own.port):
            return None
        if asked.host == own.host:
            return url
        # Another user's process may listen on the other address of `localhost`, and would receive the token.
        if asked.host == _LOCALHOST and own.host in _LOOPBACK and not own.is_secure:
            return urlsplit(url.strip())._replace(netloc=urlsplit(self.url).netloc).geturl()
        return None

    def read_token(self) -> str | None:
        """Return the home's token, or None if there is none that only its owner can read."""
        try:
            return PrivateFile(self.directory / TOKEN_FILE, secret=True).read().decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None


def publish_address(home: Path, url: str) -> Lock:
    """Publish the bridge's URL for commands with this home until the lock is released.

    Raises OSError, and SessionBusyError if another bridge has published its URL. This happens if nodes of one
    database share a home.
    """
    return acquire(home / "bridge" / ADDRESS_FILE, str(home), note=url)


def find_bridge(home: Path) -> RunningBridge | None:
    """Return the bridge that runs with this home, on this machine and as this user."""
    holder = find_holder(home / "bridge" / ADDRESS_FILE)
    return RunningBridge(holder.note, home / "bridge") if holder is not None and holder.note else None
