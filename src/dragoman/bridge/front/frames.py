"""Many WebSocket messages as the bytes of their frames, for one write (`SEND_FRAMES` in `asgi.py`).

What a server sends is not masked, so the same frames do for every viewer of the same messages.
"""

from collections.abc import Iterable
from struct import Struct

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
