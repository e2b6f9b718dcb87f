"""Where a guard keeps what lets people in: the shares of readers, and the codes of links that make owners.

One bridge by itself has them in a file and in memory (`shares.py`, `credentials.py`). Bridges that share a database
have them there, so that each of them lets in the same people.
"""

import time
from collections.abc import Callable
from typing import Protocol

import msgspec

from dragoman.bridge.guard.credentials import LinkCodes
from dragoman.bridge.guard.shares import Share, Shares
from dragoman.errors import DragomanError


class AccessUnavailable(DragomanError):
    """It cannot be seen or noted now who may come in; the same may succeed later."""


class ShareStore(Protocol):
    """The shares that a guard lets readers in by."""

    on_ended: Callable[[str, str], None] | None
    """Called with the id of a share whose readers are to leave, and with the reason for them."""

    def find(self, share_id: str) -> Share | None:
        """Return a share that is neither over nor withdrawn; raises AccessUnavailable if that is not known here."""
        ...

    async def look_up(self, share_id: str) -> None:
        """Find out about a share that is not known here, as far as that is possible now."""
        ...

    async def list(self) -> "list[Share]":
        """Return all shares that are neither over nor withdrawn, the latest first; raises AccessUnavailable."""
        ...

    def left_s(self, share: Share) -> float:
        """Return the seconds until a share is over."""
        ...

    async def make(self, life_s: float, agent: str | None, session: str | None, title: str = "") -> tuple[Share, str]:
        """Make a share, and the code for its link; raises TooManyShares, OSError, AccessUnavailable."""
        ...

    async def redeem(self, code: str) -> Share | None:
        """Return the share of a code, and use the code up; None if it is unknown, used or too old.

        Raises OSError, AccessUnavailable.
        """
        ...

    async def withdraw(self, share_id: str) -> bool:
        """End a share; tells whether there was one. Raises OSError, AccessUnavailable."""
        ...


class LinkCodeStore(Protocol):
    """The codes of links that make a browser an owner's."""

    async def make(self) -> str:
        """Return a code that lets one browser in, once; raises AccessUnavailable."""
        ...

    async def redeem(self, code: str) -> bool:
        """Use a code up; tells whether it was good. Raises AccessUnavailable."""
        ...


class CredentialStores(msgspec.Struct, frozen=True):
    """The stores of one guard, by default in memory."""

    shares: ShareStore = msgspec.field(default_factory=Shares)
    codes: LinkCodeStore = msgspec.field(default_factory=LinkCodes)
    clock: Callable[[], float] = time.time
    """The time by which cookies end, in seconds since 1970: the same for all bridges that take them."""
