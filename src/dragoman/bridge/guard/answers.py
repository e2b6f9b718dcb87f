"""The answers of the guard, a grant or a denial, and the headers that restrict a browser."""

from typing import Literal

import msgspec

from dragoman.bridge.guard.shares import Share

Role = Literal["owner", "reader"]
"""An owner may do everything, a reader may only read."""

CredentialKind = Literal["bearer", "cookie", "subprotocol"]

NO_STORE = (b"cache-control", b"no-store")
"""For every response that depends on the client, so that no cache gives it to another one."""


_RETRY_S = 5
"""A database that is restarted, or replaced by its standby, is back by then as often as not."""


class Grant(msgspec.Struct, frozen=True):
    """A client is let in, with this role, by this kind of credential."""

    role: Role
    credential: CredentialKind
    share: Share | None = None
    """By which a reader is let in."""

    @property
    def is_scoped(self) -> bool:
        """Whether it is for one session alone."""
        return self.share is not None and self.share.session is not None

    @property
    def share_id(self) -> str | None:
        """The share by which a reader is let in."""
        return None if self.share is None else self.share.id

    def reaches(self, agent: str, session_id: str | None = None) -> bool:
        """Tell whether it is good for an agent, and for a session of it."""
        if self.share is None or self.share.session is None:
            return True
        return agent == self.share.agent and session_id in (None, self.share.session)


class AccessDenial(msgspec.Struct, frozen=True):
    """A client is not let in; the reason is in plain words and quotes nothing of the request."""

    status: int
    reason: str
    headers: tuple[tuple[bytes, bytes], ...] = (NO_STORE,)
    unknown_share: str | None = None
    """The share that the request depends on, if it is not known here whether that still holds."""


def deny_unauthorized(reason: str) -> AccessDenial:
    """Deny a request that has no valid credential."""
    return AccessDenial(401, reason, (NO_STORE, (b"www-authenticate", b'Bearer realm="dragoman"')))


def deny_too_many(reason: str, wait_s: float) -> AccessDenial:
    """Deny a request until this many seconds have passed."""
    return AccessDenial(429, reason, (NO_STORE, (b"retry-after", b"%d" % (int(wait_s) + 1))))


def deny_unknown(reason: str, share_id: str) -> AccessDenial:
    """Deny a request of a reader for as long as it is not known whether the share still holds."""
    return AccessDenial(503, reason, (NO_STORE, (b"retry-after", b"%d" % _RETRY_S)), share_id)


# ── security headers ──────────────────────────────────────────────────────────────────────────────

TRUSTED_TYPES_POLICY = "dragoman"
"""The one Trusted Types policy that the page may make."""

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
"""No inline script or style, nothing from another origin, no frame around the page, no text that becomes markup."""

OTHER_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""For a response that is not the page, if a browser is led to show it as one: a picture with a script in it, say."""

WORKER_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""For the service worker, which asks for nothing and loads nothing. Browsers start none that is in a sandbox."""

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
    """Return the headers of every response; `html` is for the page itself, `worker` for its service worker."""
    policy = PAGE_POLICY if html else WORKER_POLICY if worker else OTHER_POLICY
    return [(b"content-security-policy", policy.encode()), *_ALWAYS]
