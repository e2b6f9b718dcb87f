"""Builds the title of a session from its prompt: one short line, without text that looks like a secret.

Unlike the prompt, the title is shown in lists, to every viewer, and may be on a screen that others see.
"""

import re

from dragoman.text.safe import one_line
from dragoman.text.secret import HIDDEN, KEY_SHAPES, is_secret_name

MAX_TITLE_CHARS = 80

_SCANNED_CHARS = 4_000
"""The characters of the prompt that are scanned. A prompt may have megabytes, but its title is near the start."""

_KEY = re.compile(KEY_SHAPES + r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*", re.DOTALL)

_ASSIGNMENT = re.compile(r"""(?<![/\\.])\b([A-Za-z][\w-]*)(\s*[=:]\s*)("[^"]*"|'[^']*'|\S+)""")
"""A name and its value. The end of a path, as in `/etc/passwd: what is that?`, is not a name."""
_USER_IN_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@")


def make_title(prompt: str) -> str:
    """Return a title for a prompt. It is empty if the prompt has no words."""
    return one_line(_without_secrets(prompt.strip()[:_SCANNED_CHARS]), MAX_TITLE_CHARS)


def _without_secrets(text: str) -> str:
    text = re.sub(_KEY, HIDDEN, text)
    text = re.sub(_USER_IN_ADDRESS, rf"\1{HIDDEN}@", text)
    return re.sub(_ASSIGNMENT, _hide_value, text)


def _hide_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{HIDDEN}" if is_secret_name(found[1]) else found[0]
