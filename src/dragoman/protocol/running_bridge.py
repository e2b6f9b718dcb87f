"""The bridge that runs with a home: its address, for other commands of the same home.

While it serves, `dragoman serve` holds a lock, `<home>/bridge/address`, with its URL in it. The URL counts only while
the lock is held: after a crash another user's process may listen at that port. So the token of the home is given to
this very address, and to no other.
"""

from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from dragoman.files.private_file import PrivateFile
from dragoman.protocol.address import Address, BadAddress
from dragoman.store.lock import Lock, acquire, find_holder

ADDRESS_FILE = "address"
TOKEN_FILE = "token"  # noqa: S105 -- the name of the file

_LOCALHOST = "localhost"
_LOOPBACK = ("127.0.0.1", "::1")


class RunningBridge(msgspec.Struct, frozen=True):
    """A bridge that runs now."""

    url: str
    """Where it listens, with a slash at the end."""
    directory: Path

    def acp_url(self, agent: str | None = None) -> str:
        """Return the address of an agent, by default the first."""
        return f"{self.url}acp/{agent}" if agent else f"{self.url}acp"

    def match(self, url: str) -> str | None:
        """Return a URL of this bridge, with `localhost` as the address that it listens at; None for another's."""
        try:
            given, own = Address.parse(url), Address.parse(self.url)
        except BadAddress:
            return None
        if (given.is_secure, given.port) != (own.is_secure, own.port):
            return None
        if given.host == own.host:
            return url
        # Another user's process may listen at the other address of that name, and would get the token.
        if given.host == _LOCALHOST and own.host in _LOOPBACK and not own.is_secure:
            return urlsplit(url.strip())._replace(netloc=urlsplit(self.url).netloc).geturl()
        return None

    def read_token(self) -> str | None:
        """Return the token of the home; None if there is none that only its owner can read."""
        try:
            return PrivateFile(self.directory / TOKEN_FILE, secret=True).read().decode("ascii").strip() or None
        except (OSError, UnicodeDecodeError):
            return None


def note_address(home: Path, url: str) -> Lock:
    """Let commands of this home find the bridge at this URL until the lock is released.

    Raises SessionBusy when another bridge has done that, as nodes of one database may that share a home, and OSError.
    """
    return acquire(home / "bridge" / ADDRESS_FILE, str(home), note=url)


def find_bridge(home: Path) -> RunningBridge | None:
    """Return the bridge that runs with this home, on this machine and as this user."""
    holder = find_holder(home / "bridge" / ADDRESS_FILE)
    return RunningBridge(holder.note, home / "bridge") if holder is not None and holder.note else None
