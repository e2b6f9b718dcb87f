"""The recording of a tap: a trajectory without secrets that also keeps invalid lines.

Environments, headers, the settings of MCP servers and tokens are left out.
"""

import os
import re
from collections.abc import Callable, Iterable, Sequence

import msgspec

from dragoman.check.conversation import Side
from dragoman.recording.recorder import (
    EVENT,
    MAX_NOISE_CHARACTERS,
    NOISE,
    RECEIVED,
    SENT,
    SENT_NOISE,
    RecordingError,
    TrajectoryFile,
    text_noise,
)
from dragoman.recording.secrecy import SUSPECTS, hide_secrets
from dragoman.text.secret import HIDDEN, KEY_SHAPES, KEY_STARTS, SecretHider, secrets_in
from dragoman.wire import Malformed, Oversized
from dragoman.wire.message import BAD_JSON, is_sound, parse_mended

_HIDDEN = HIDDEN.encode()

_NAMED = re.compile(
    rb'("[\w.-]*(?:api[_-]?key|(?<!progress)[_-]?token|secret|passwd|password|passphrase|authorization)"\s*:\s*)'
    rb'"(?:[^"\\]|\\.)*+"',
    re.IGNORECASE,
)
"""A member whose name shows that its value is secret."""

_NAMES = (
    *(suspect.lower() for suspect in SUSPECTS),
    *(b'key"', b'token"', b'secret"', b'passwd"', b'password"', b'passphrase"', b'authorization"'),
)

_SHAPED = re.compile(KEY_SHAPES.encode() + rb"|(?<=Bearer )[\w.~+/-]{8,}=*")
"""A token with a known form, anywhere in a line."""

_SHAPES = (*(start.encode() for start in KEY_STARTS), b"Bearer ")


class Redaction:
    """Redacts secrets in lines."""

    def __init__(self) -> None:
        known = SecretHider(secret for name, value in os.environ.items() for secret in secrets_in(name, value))
        self._known = [os.fsencode(secret) for secret in known.secrets]

    def clean(self, line: bytes) -> bytes:
        """Return a line without known secrets and values that look like secrets."""
        line = hide_secrets(line)
        for value in self._known:
            line = line.replace(value, _HIDDEN)
        line = _SHAPED.sub(_HIDDEN, line)
        return _NAMED.sub(rb'\1"' + _HIDDEN + b'"', line)

    def clean_all(self, lines: Sequence[bytes]) -> list[bytes]:
        """Return lines without secrets. Searches all of them at once first, because most have none."""
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
    def failure(self) -> RecordingError | None:
        """Why recording has stopped, or None."""
        return self._file.failure

    @property
    def path(self) -> str:
        """The path of the file."""
        return str(self._file.path)

    def lines(self, sender: Side, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
        """Write lines that passed at the same time."""
        message, noise = _KEYS[sender]
        sorted_out = [_classify(line) for line in lines]
        cleaned = self._clean_all([line for _, line in sorted_out])
        entries = [
            (message, line) if is_message else (noise, text_noise(line))
            for (is_message, _), line in zip(sorted_out, cleaned, strict=True)
        ]
        self._file.append(entries, time_ns // 1_000_000)

    def event(self, event: str, time_ns: int) -> None:
        """Write an event of the process."""
        self._file.append([(EVENT, msgspec.json.encode(event))], time_ns // 1_000_000)

    def torn(self, sender: Side, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
        """Write the start of a line that an exit cut off. It is not a breach, so it is not noise."""
        for line in lines:
            [begun] = self._clean_all([_classify(line)[1]])
            self.event(f"torn line of the {sender}: {begun.decode(errors='replace')[:MAX_NOISE_CHARACTERS]}", time_ns)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _classify(line: bytes | Oversized) -> tuple[bool, bytes]:
    """Return whether a line is a message, or at least an object, and the bytes to keep."""
    if not isinstance(line, bytes):
        return False, b"a line of more than %d bytes" % line.max_bytes
    message, mended = parse_mended(line)
    if not isinstance(message, Malformed) or _is_object(mended):
        return True, mended
    return False, line


def _is_object(line: bytes) -> bool:
    """Return whether a line is a JSON object. An object that is not a message is kept unchanged."""
    if not is_sound(line):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except BAD_JSON:
        return False
