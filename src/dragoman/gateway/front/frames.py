"""Many WebSocket messages in one write.

ASGI has one message a call, and hypercorn takes each through a dozen objects to a system call of its own: that costs
several times what the gateway itself does for a message. Our server offers `SEND_MANY` beside it, as an extension in
the scope; under a server that does not, messages are sent one by one.
"""

from collections.abc import Iterable
from struct import Struct

SEND_MANY = "dragoman.websocket.send_many"
"""Both the name of the extension and the type of its message, which has a list of bytes as `texts`."""

_TEXT = 0x81
_SHORT = Struct("!BB").pack
_MEDIUM = Struct("!BBH").pack
_LONG = Struct("!BBQ").pack


def encode_texts(texts: Iterable[bytes]) -> bytes:
    """Write each as a text frame of its own, as a server does: whole and unmasked (RFC 6455, 5.2)."""
    pieces: list[bytes] = []
    for text in texts:
        pieces.append(_head(len(text)))
        pieces.append(text)
    return b"".join(pieces)


def _head(size: int) -> bytes:
    if size < 126:
        return _SHORT(_TEXT, size)
    if size < 0x10000:
        return _MEDIUM(_TEXT, 126, size)
    return _LONG(_TEXT, 127, size)
