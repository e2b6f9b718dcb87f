"""The recording of a tap: a trajectory, in which what is no message of either side is kept as well."""

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

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
from dragoman.wire import Malformed, Oversized, parse
from dragoman.wire.message import BAD_JSON, is_sound
from dragoman.wire.surrogates import without_halves

Sender = Literal["client", "agent"]

_KEYS: dict[Sender, tuple[bytes, bytes]] = {"client": (SENT, SENT_NOISE), "agent": (RECEIVED, NOISE)}


class Recording:
    """Writes what passes to a file."""

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

    @property
    def count(self) -> int:
        """How many records it has."""
        return self._file.count

    def lines(self, sender: Sender, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
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
        """Write what became of the process."""
        self._file.append([(EVENT, msgspec.json.encode(words))], time_ns // 1_000_000)

    def torn(self, sender: Sender, lines: Iterable[bytes | Oversized], time_ns: int) -> None:
        """Write the beginning of a line that a death has cut short, which is no breach and so no noise."""
        for line in lines:
            [begun] = self._clean_all([_sort_out(line)[1]])
            self.event(f"torn line of the {sender}: {begun.decode(errors='replace')[:MAX_NOISE_CHARACTERS]}", time_ns)

    def close(self) -> None:
        """End the file."""
        self._file.close()


def _sort_out(line: bytes | Oversized) -> tuple[bool, bytes]:
    """Tell whether a line is a message, or at least an object, and return what to keep of it."""
    if not isinstance(line, bytes):
        return False, b"a line of more than %d bytes" % line.max_bytes
    if not isinstance(parse(line), Malformed):
        return True, line
    for candidate in (line, without_halves(line)):
        if candidate is not None and _is_object(candidate):
            return True, candidate
    return False, line


def _is_object(line: bytes) -> bool:
    """Tell whether a line is an object at least: what it lacks to be a message is worth keeping."""
    if not is_sound(line):
        return False
    try:
        return isinstance(msgspec.json.decode(line), dict)
    except BAD_JSON:
        return False
