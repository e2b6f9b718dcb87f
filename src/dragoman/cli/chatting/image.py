"""Images for the next prompt, by path."""

import base64
from pathlib import Path

from dragoman.errors import DragomanError
from dragoman.protocol import v1

MAX_IMAGE_BYTES = 20 * 1024 * 1024
"""More than any provider takes; it goes to the agent in one message."""

_MAGIC = ((b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF8", "image/gif"))


class BadImage(DragomanError):
    """A file that cannot be sent as an image."""


def read_image(path: Path) -> v1.ImageContent:
    """Read an image; raises BadImage."""
    try:
        if path.stat().st_size > MAX_IMAGE_BYTES:
            raise BadImage(f"{path} is too large: at most {MAX_IMAGE_BYTES // 1024 // 1024} MiB are sent")
        data = path.read_bytes()
    except OSError as error:
        raise BadImage(f"{path} cannot be read: {error.strerror}") from None
    mime_type = _find_type(data)
    if mime_type is None:
        raise BadImage(f"{path} is no image that agents know: give a PNG, JPEG, GIF or WebP file")
    return v1.ImageContent(data=base64.b64encode(data).decode(), mime_type=mime_type, uri=path.absolute().as_uri())


def _find_type(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for magic, mime_type in _MAGIC if data.startswith(magic)), None)
