"""The recording of a tap: a trajectory that also keeps lines that are no messages, without secrets.

Environments, headers, the settings of MCP servers and tokens are left out.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.check.conversation import Side
from dragoman.proc.command import without_secrets
from dragoman.protocol.recorder import (
    EVENT,
    MAX_NOISE_CHARACTERS,
    NOISE,
    RECEIVED,
    SENT,
    SENT_NOISE,
    NotRecorded,
    TrajectoryFile,
    text_noise,
)
from dragoman.protocol.secrecy import SUSPECTS, hide_secrets
from dragoman.text.secret import HIDDEN
from dragoman.wire import Malformed, Oversized, parse
from dragoman.wire.message import BAD_JSON, is_sound, replace_lone_surrogates

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
"""A token with a known form, anywhere in a line."""

_SHAPES = (b"sk-", b"gh", b"glpat-", b"xox", b"AKIA", b"AIza", b"eyJ", b"Bearer ")


class Redaction:
    """Takes the secrets out of lines."""

    def __init__(self) -> None:
        secret = os.environ.keys() - without_secrets().keys()
        values = {os.environ[name] for name in secret if len(os.environ[name]) >= SHORTEST_SECRET}
        self._known = [value.encode() for value in sorted(values, key=len, reverse=True)]

    def clean(self, line: bytes) -> bytes:
        """Return a line without known secrets and values that look like secrets."""
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


_KEYS: dict[Side, tuple[str, str]] = {"client": (SENT, SENT_NOISE), "agent": (RECEIVED, NOISE)}


class Recording:
    """Writes lines and events to a file."""

    def __init__(self, file: TrajectoryFile, clean_all: Callable[[Sequence[bytes]], list[bytes]]) -> None:
        self._file = file
        self._clean_all = clean_all

    @property
    def failure(self) -> NotRecorded | None:
        """Why nothing more is recorded, if so."""
        return self._file.failure

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self._file.path)

    def lines(self, sender: Side, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
        """Write lines that passed at one time."""
        message, noise = _KEYS[sender]
        sorted_out = [_sort_out(line) for line in lines]
        cleaned = self._clean_all([line for _, line in sorted_out])
        entries = [
            (message, line) if is_message else (noise, text_noise(line))
            for (is_message, _), line in zip(sorted_out, cleaned, strict=True)
        ]
        self._file.append(entries, time_ns // 1_000_000)

    def event(self, words: str, time_ns: int) -> None:
        """Write an event of the process."""
        self._file.append([(EVENT, msgspec.json.encode(words))], time_ns // 1_000_000)

    def torn(self, sender: Side, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
        """Write the beginning of a line that a death has cut short, which is no breach and so no noise."""
        for line in lines:
            [begun] = self._clean_all([_sort_out(line)[1]])
            self.event(f"torn line of the {sender}: {begun.decode(errors='replace')[:MAX_NOISE_CHARACTERS]}", time_ns)

    def close(self) -> None:
        """End the file."""
        self._file.close()


def _sort_out(line: bytes | Oversized) -> tuple[bool, bytes]:
    """Tell whether a line is a message, or at least an object, and return the bytes to keep."""
    if not isinstance(line, bytes):
        return False, b"a line of more than %d bytes" % line.max_bytes
    if not isinstance(parse(line), Malformed):
        return True, line
    for candidate in (line, replace_lone_surrogates(line)):
        if candidate is not None and _is_object(candidate):
            return True, candidate
    return False, line


def _is_object(line: bytes) -> bool:
    """Tell whether a line is a JSON object: an object that is no message is kept as it is."""
    if not is_sound(line):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except BAD_JSON:
        return False
