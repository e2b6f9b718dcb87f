"""The two eras of MCP, their versions, and a memory of each server's era.

legacy  2024-11-05 to 2025-11-25: an `initialize` handshake, then both sides may send requests
modern  2026-07-28: no handshake, each request carries version and capabilities in `_meta`, and only we send requests
"""

from collections import OrderedDict
from enum import Enum

LEGACY_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
VERSIONS = LEGACY_VERSIONS + MODERN_VERSIONS
"""Versions of MCP, oldest first. We request the last one of each era."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"
"""Keys in the `_meta` of a modern request. The last one is in the `_meta` of a result."""


MAX_REMEMBERED = 512
"""Maximum number of servers whose era is remembered. The oldest entry is dropped first."""


class Era(Enum):
    """The two forms of the protocol."""

    LEGACY = "legacy"
    MODERN = "modern"


BOTH_ERAS = frozenset(Era)


class EraMemory:
    """The era of each server that answered, by the identity of its definition."""

    def __init__(self) -> None:
        self._eras: OrderedDict[str, Era] = OrderedDict()

    def recall(self, identity: str) -> Era | None:
        """Return the last known era of a server. The server may have changed since."""
        return self._eras.get(identity)

    def remember(self, identity: str, era: Era) -> None:
        """Remember the era of a server."""
        self._eras[identity] = era
        self._eras.move_to_end(identity)
        while len(self._eras) > MAX_REMEMBERED:
            self._eras.popitem(last=False)
