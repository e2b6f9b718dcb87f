"""TLS for the bridge: the files of a certificate and its key, and what HTTP/2 demands of TLS."""

import ssl
from pathlib import Path

import msgspec

from dragoman.errors import DragomanError

HTTP2_ALPN = "h2"
HTTP1_ALPN = "http/1.1"


class CannotListen(DragomanError):
    """The address cannot be listened at."""


class Tls(msgspec.Struct, frozen=True):
    """The files of a certificate with its chain, and of its key, both PEM."""

    certificate: Path
    key: Path


def make_context(tls: Tls) -> ssl.SSLContext:
    """Make what HTTP/2 demands of TLS (RFC 9113, 9.2); raises CannotListen."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_COMPRESSION
    context.set_ciphers("ECDHE+AESGCM:ECDHE+CHACHA20")
    context.set_alpn_protocols([HTTP2_ALPN, HTTP1_ALPN])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except OSError as error:
        problem = error.strerror or "they do not fit, or are no PEM"
        raise CannotListen(f"cannot use {tls.certificate} and {tls.key} for TLS: {problem}") from None
    return context
