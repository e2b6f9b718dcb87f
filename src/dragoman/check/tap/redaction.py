"""What a recording leaves out: environments, headers, what MCP servers are given, and tokens."""

import os
import re
from collections.abc import Sequence

from dragoman.proc.environment import without_secrets
from dragoman.protocol.secrecy import HIDDEN, SUSPECTS, hide_secrets

SHORTEST_SECRET = 8
"""A shorter value is a word of any text, and hiding it would only garble that."""

_HIDDEN = HIDDEN.encode()

_NAMED = re.compile(
    rb'("[\w.-]*(?:api[_-]?key|(?<!progress)[_-]?token|secret|passwd|password|passphrase|authorization)"\s*:\s*)'
    rb'"(?:[^"\\]|\\.)*+"',
    re.IGNORECASE,
)
"""A member whose name says that its value is secret."""

_NAMES = (
    *(suspect.lower() for suspect in SUSPECTS),
    *(b'key"', b'token"', b'secret"', b'passwd"', b'password"', b'passphrase"', b'authorization"'),
)

_SHAPED = re.compile(
    rb"\b(?:sk-[A-Za-z0-9_-]{16,}|gh[opsu]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abeprs]-[\w-]{10,}"
    rb"|AKIA[A-Z0-9]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]{5,})"
    rb"|(?<=Bearer )[\w.~+/-]{8,}=*"
)
"""A token that is known by its looks, wherever it is."""

_SHAPES = (b"sk-", b"gh", b"glpat-", b"xox", b"AKIA", b"AIza", b"eyJ", b"Bearer ")


class Redaction:
    """Takes the secrets out of lines."""

    def __init__(self) -> None:
        secret = os.environ.keys() - without_secrets().keys()
        values = {os.environ[name] for name in secret if len(os.environ[name]) >= SHORTEST_SECRET}
        self._known = [value.encode() for value in sorted(values, key=len, reverse=True)]

    def clean(self, line: bytes) -> bytes:
        """Return a line without what is known to be secret in it, or looks so."""
        line = hide_secrets(line)
        for value in self._known:
            line = line.replace(value, _HIDDEN)
        line = _SHAPED.sub(_HIDDEN, line)
        return _NAMED.sub(rb'\1"' + _HIDDEN + b'"', line)

    def clean_all(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return lines without secrets; most have none, which takes fewer looks to see in all of them at once."""
        if self._may_have_secrets(b"\n".join(lines)):
            return [self.clean(line) for line in lines]
        return keep_all(lines)

    def _may_have_secrets(self, text: bytes) -> bool:
        lowered = text.lower()
        return (
            any(name in lowered for name in _NAMES)
            or any(shape in text for shape in _SHAPES)
            or any(value in text for value in self._known)
        )


def keep_all(lines: Sequence[bytes]) -> list[bytes]:
    """Return lines with all their secrets."""
    return [line.strip() for line in lines]
