"""A place in a list of sessions, as text that says nothing to whoever carries it.

It names the last session that was shown, so that sessions which come, go or move meanwhile shift nothing.
The checksum covers the filter too: a cursor is good for the list that it came from.
"""

import base64
import binascii
from zlib import crc32

from dragoman.errors import BadCursor
from dragoman.store.naming import is_session_id

VERSION = "1"


def encode_cursor(updated_ms: int, session_id: str, cwd: str | None) -> str:
    """Name the last session that was shown."""
    body = f"{VERSION}.{updated_ms}.{session_id}"
    return base64.urlsafe_b64encode(f"{body}.{_checksum(body, cwd)}".encode()).decode().rstrip("=")


def decode_cursor(cursor: str, cwd: str | None) -> tuple[int, str]:
    """Give the time and id of the last session that was shown; raises BadCursor."""
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True).decode("ascii")
    except (UnicodeError, binascii.Error):
        raise BadCursor("that is no cursor of this list") from None
    body, _, checksum = text.rpartition(".")
    version, _, place = body.partition(".")
    if version != VERSION:
        raise BadCursor("that is no cursor of this list, or one of another version of dragoman")
    if checksum != _checksum(body, cwd):
        raise BadCursor("that cursor belongs to another list, or was changed on its way")
    updated_ms, _, session_id = place.partition(".")
    if not updated_ms.isdecimal() or not is_session_id(session_id):
        raise BadCursor("that is no cursor of this list")
    return int(updated_ms), session_id


def _checksum(body: str, cwd: str | None) -> str:
    covered = body if cwd is None else f"{body} {cwd}"
    return f"{crc32(covered.encode()):08x}"
