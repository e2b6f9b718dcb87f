"""Ordinary words for the things that people ask of files and commands.

A phrase says what is meant and with what, in roles (`path`, `pattern`, `content`, …); which tool can do it, and what
that tool calls those roles, is decided elsewhere. `strength` is how sure it is: a foreign tool that scores more wins.
"""

import re
from typing import Any

import msgspec

STRONG = 10.0
WEAK = 3.5
FAINT = 2.0
"""A phrase that lacks what it needs: anything else that fits is better."""


class Phrase(msgspec.Struct, frozen=True):
    """What is meant."""

    kind: str
    roles: dict[str, Any]
    strength: float = STRONG


def any_case(pattern: str) -> re.Pattern[str]:
    """Return a pattern for words in any case, over several lines."""
    return re.compile(pattern, re.IGNORECASE | re.DOTALL)
