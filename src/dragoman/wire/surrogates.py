r"""Halves of letters in JSON, such as `"\ud83d"`: some programs cut a text in the middle of an emoji and send that.

No decoder takes them, and a message is worth more than half a letter.
"""

import re

_ESCAPES = re.compile(
    rb"\\\\"
    rb"|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(?P<half>\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)


def without_halves(line: bytes) -> bytes | None:
    """Return a line with a replacement character for each half; None when there are none."""
    found = False

    def replace(escape: re.Match[bytes]) -> bytes:
        nonlocal found
        if escape["half"] is None:
            return escape[0]
        found = True
        return rb"\ufffd"

    mended = _ESCAPES.sub(replace, line)
    return mended if found else None
