"""The guard's answers (a grant or a denial), and the headers that restrict browsers."""

from typing import Literal

import msgspec

from dragoman.bridge.guard.shares import Share

Role = Literal["owner", "reader"]
"""An owner may do everything, a reader may only read."""

CredentialKind = Literal["bearer", "cookie", "subprotocol"]

NO_STORE = (b"cache-control", b"no-store")
"""The header of every response that depends on the client, so that no cache sends it to another client."""


_RETRY_S = 5
"""Retry-After while the database is not available. A restart or a failover often takes less time."""


class Grant(msgspec.Struct, frozen=True):
    """The permission of a client, with its role and the kind of its credential."""

    role: Role
    credential: CredentialKind
    share: Share | None = None
    """The share of a reader."""

    @property
    def is_scoped(self) -> bool:
        """Whether the grant is limited to one session."""
        return self.share is not None and self.share.session is not None

    @property
    def share_id(self) -> str | None:
        """The id of a reader's share, or None for the owner."""
        return None if self.share is None else self.share.id

    def reaches(self, agent: str, session_id: str | None = None) -> bool:
        """Return whether the grant includes an agent, and this session if one is given."""
        if self.share is None or self.share.session is None:
            return True
        return agent == self.share.agent and session_id in (None, self.share.session)


class AccessDenial(msgspec.Struct, frozen=True):
    """The refusal of a request. Its reason quotes nothing from the request."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = (NO_STORE,)
    unknown_share: str | None = None
    """The share of the request, if this node does not know whether it is still valid."""


def deny_unauthorized(reason: str) -> AccessDenial:
    """Return the denial of a request without a valid credential."""
    return AccessDenial(401, reason, (NO_STORE, (b"www-authenticate", b'Bearer realm="dragoman"')))


def deny_too_many(reason: str, wait_s: float) -> AccessDenial:
    """Return the denial of a request that may be repeated after `wait_s` seconds."""
    return AccessDenial(429, reason, (NO_STORE, (b"retry-after", b"%d" % (int(wait_s) + 1))))


def deny_unknown(reason: str, share_id: str) -> AccessDenial:
    """Return the denial of a reader's request while it is unknown whether the share is still valid."""
    return AccessDenial(503, reason, (NO_STORE, (b"retry-after", b"%d" % _RETRY_S)), share_id)


# ── security headers ──────────────────────────────────────────────────────────────────────────────

TRUSTED_TYPES_POLICY = "dragoman"
"""The only Trusted Types policy that the page may create."""

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "worker-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        f"trusted-types {TRUSTED_TYPES_POLICY}",
    )
)
"""The policy of the page: no inline scripts or styles, nothing from other origins, no framing, no text as markup."""

OTHER_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""The policy of other responses, in case a browser displays one as a page, such as a picture that contains a script."""

WORKER_POLICY = "default-src 'none'; script-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The policy of the page's workers, which load only our scripts. Browsers do not start a sandboxed service worker."""

_FEATURES = (
    "accelerometer", "camera", "display-capture", "geolocation", "gyroscope", "hid", "magnetometer",
    "microphone", "midi", "payment", "publickey-credentials-get", "screen-wake-lock", "serial", "usb",
    "xr-spatial-tracking",
)  # fmt: skip

_ALWAYS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", ", ".join(f"{name}=()" for name in _FEATURES).encode()),
    (b"x-robots-tag", b"noindex"),
)


def security_headers(*, html: bool, worker: bool = False) -> list[tuple[bytes, bytes]]:
    """Return the headers of every response. `html` marks the page and `worker` the script of a worker."""
    policy = PAGE_POLICY if html else WORKER_POLICY if worker else OTHER_POLICY
    return [(b"content-security-policy", policy.encode()), *_ALWAYS]
