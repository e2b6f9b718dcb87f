"""The stores of a guard: the shares of readers, and the codes of links for the owner's browsers.

A single bridge keeps them in a file and in memory (`shares.py`, `credentials.py`). Bridges that share a database store
them there, so that all of them admit the same users.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman.bridge.guard.credentials import LinkCodes
from dragoman.bridge.guard.shares import Share, Shares
from dragoman.errors import DragomanError


class AccessUnavailableError(DragomanError):
    """The store of shares and codes is not available now. A later attempt may succeed."""


class ShareStore(Protocol):
    """The shares of readers."""

    on_ended: Callable[[str, str], None] | None
    """Called with the id of an ended share, and the reason to show to its readers."""

    def find(self, share_id: str) -> Share | None:
        """Return a valid share, or None if it has expired or was revoked.

        Raises AccessUnavailableError if this node does not know whether it is valid.
        """
        ...

    async def look_up(self, share_id: str) -> None:
        """Load a share that this node does not know, if the store is available."""
        ...

    async def list(self) -> "list[Share]":
        """Return all valid shares, latest first. Raises AccessUnavailableError."""
        ...

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share expires."""
        ...

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Create a share and the code for its link. Raises TooManySharesError, OSError and AccessUnavailableError."""
        ...

    async def redeem(self, code: str) -> Share | None:
        """Use a code and return its share, or None if it is unknown, used or too old.

        Raises OSError and AccessUnavailableError.
        """
        ...

    async def withdraw(self, share_id: str) -> bool:
        """Revoke a share. Return whether it existed. Raises OSError and AccessUnavailableError."""
        ...


class LinkCodeStore(Protocol):
    """The codes of links for the owner's browsers."""

    async def make(self) -> str:
        """Return a new code, which logs in one browser once. Raises AccessUnavailableError."""
        ...

    async def redeem(self, code: str) -> bool:
        """Use a code. Return False if it is unknown, used or expired. Raises AccessUnavailableError."""
        ...


class CredentialStores(msgspec.Struct, frozen=True):
    """The stores of one guard, by default in memory."""

    shares: ShareStore = msgspec.field(default_factory=Shares)
    codes: LinkCodeStore = msgspec.field(default_factory=LinkCodes)
    clock: Callable[[], float] = time.time
    """The clock for the expiry of cookies, in seconds since 1970. It is the same for all bridges of a database."""
