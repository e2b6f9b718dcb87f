"""The request that makes a WebSocket of a connection (RFC 6455, 4.2), read without any I/O."""

import base64
import binascii
import hashlib
from collections.abc import Iterator

import msgspec

from dragoman.bridge.front.asgi import Headers
from dragoman.bridge.front.server.request import RequestHead

VERSION = b"13"

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES = 16


class Handshake(msgspec.Struct, frozen=True):
    """What a client says that wants a WebSocket."""

    key: bytes
    subprotocols: list[str]

    def accept(self, subprotocol: str | None, headers: Headers) -> Headers:
        """Return the headers of the answer that switches protocols; extensions are not offered."""
        proof = base64.b64encode(hashlib.sha1(self.key + _GUID, usedforsecurity=False).digest())
        chosen = [] if subprotocol is None else [(b"sec-websocket-protocol", subprotocol.encode())]
        switch = [(b"upgrade", b"websocket"), (b"connection", b"upgrade"), (b"sec-websocket-accept", proof)]
        return [*switch, *chosen, *headers]


def is_upgrade(head: RequestHead) -> bool:
    """Tell whether a request wants a WebSocket; one with a body is an ordinary request."""
    names = {name for name, _ in head.headers}
    if head.method != "GET" or head.http_version != "1.1" or names & {b"content-length", b"transfer-encoding"}:
        return False
    return b"websocket" in _tokens(head, b"upgrade") and b"upgrade" in _tokens(head, b"connection")


def read_handshake(head: RequestHead) -> Handshake | str:
    """Read what a request for a WebSocket says; what is wrong with it, in words, if something is."""
    keys = [value for name, value in head.headers if name == b"sec-websocket-key"]
    if len(keys) != 1 or not _is_key(keys[0]):
        return "Sec-WebSocket-Key is missing or broken; expected 16 bytes in base64"
    if list(_tokens(head, b"sec-websocket-version")) != [VERSION]:
        return "Sec-WebSocket-Version has to be 13"
    subprotocols = [one.decode("latin-1") for one in _values(head, b"sec-websocket-protocol")]
    return Handshake(keys[0], subprotocols)


def _is_key(value: bytes) -> bool:
    try:
        return len(base64.b64decode(value, validate=True)) == _KEY_BYTES
    except binascii.Error:
        return False


def _values(head: RequestHead, wanted: bytes) -> Iterator[bytes]:
    for name, value in head.headers:
        if name == wanted:
            yield from (one.strip() for one in value.split(b","))


def _tokens(head: RequestHead, wanted: bytes) -> Iterator[bytes]:
    return (one.lower() for one in _values(head, wanted))
