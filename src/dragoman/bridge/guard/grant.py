"""What the guard answers: whom it lets in, or why not."""

from typing import Literal

import msgspec

Role = Literal["owner", "reader"]
"""An owner may do everything, a reader only look."""

Way = Literal["bearer", "cookie", "subprotocol"]

NO_STORE = (b"cache-control", b"no-store")
"""For whatever depends on who asks, so that no cache hands it to somebody else."""


class Grant(msgspec.Struct, frozen=True):
    """Somebody is let in, as this role, by this kind of credential."""

    role: Role
    way: Way


class Refusal(msgspec.Struct, frozen=True):
    """Somebody is not let in; the reason is in plain words and quotes nothing that was sent."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = (NO_STORE,)


def unauthorized(reason: str) -> Refusal:
    """Refuse for want of a credential that is right."""
    return Refusal(401, reason, (NO_STORE, (b"www-authenticate", b'Bearer realm="dragoman"')))


def too_many(reason: str, wait_s: float) -> Refusal:
    """Refuse until this many seconds have passed."""
    return Refusal(429, reason, (NO_STORE, (b"retry-after", b"%d" % (int(wait_s) + 1))))
