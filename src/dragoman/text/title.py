"""The title of a session, made of a prompt: one line, short, and without what looks like a secret.

A title is shown in lists, to every viewer, and may be on a screen that others see; the prompt itself is not.
"""

import re

from dragoman.text.safe import one_line
from dragoman.text.secret import HIDDEN, is_secret_name

MAX_TITLE_CHARS = 80

_LOOKED_AT_CHARS = 4_000
"""A prompt may have megabytes, and its title is in its first lines."""

_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{12,}"  # Anthropic, OpenAI, Stripe
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abeoprs]|hf|npm|pypi)[-_][\w-]{12,}"
    r"|\bAKIA[0-9A-Z]{12,}|\bAIza[\w-]{20,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?"  # a JSON Web Token
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*",
    re.DOTALL,
)
"""Shapes that providers give their keys, so that leaks of them are found."""

_ASSIGNMENT = re.compile(r"""(?<![/\\.])\b([A-Za-z][\w-]*)(\s*[=:]\s*)("[^"]*"|'[^']*'|\S+)""")
"""A name and its value; the end of a path, such as `/etc/passwd: what is that?`, is no name."""
_USER_IN_ADDRESS = re.compile(r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@")


def make_title(prompt: str, max_chars: int = MAX_TITLE_CHARS) -> str:
    """Return the title that a prompt gives; empty for one without words."""
    return one_line(_without_secrets(prompt.strip()[:_LOOKED_AT_CHARS]), max_chars)


def _without_secrets(text: str) -> str:
    text = re.sub(_KEY, HIDDEN, text)
    text = re.sub(_USER_IN_ADDRESS, rf"\1{HIDDEN}@", text)
    return re.sub(_ASSIGNMENT, _hide_value, text)


def _hide_value(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{HIDDEN}" if is_secret_name(found[1]) else found[0]
