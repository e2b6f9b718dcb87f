"""The headers that tell a browser what it may do with what we send."""

POLICY_NAME = "dragoman"
"""The one Trusted Types policy that the page may make."""

PAGE_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        f"trusted-types {POLICY_NAME}",
    )
)
"""No inline script or style, nothing from elsewhere, no frame around it, no text made into markup unseen."""

OTHER_POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox"
"""For what is no page, should a browser be led to show it as one: a picture with a script in it, say."""

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


def security_headers(*, html: bool) -> list[tuple[bytes, bytes]]:
    """Return what goes with every response; `html` is for the page itself."""
    policy = PAGE_POLICY if html else OTHER_POLICY
    return [(b"content-security-policy", policy.encode()), *_ALWAYS]
