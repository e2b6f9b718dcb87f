"""The conversation as the adversarial agent writes it down, for the checker that reads it in another process."""

import time
from pathlib import Path
from typing import BinaryIO

import msgspec

from dragoman.check.conversation import MAX_BYTES, Conversation, Flooded, Side


class Line(msgspec.Struct, array_like=True):
    """A line or an event, and when it came, in seconds since the agent was started."""

    at_s: float
    sender: Side
    line: str = ""
    """Each byte as the letter of its number, for it may be anything."""
    event: str = ""


class Record:
    """A file that every line goes into at once, for the process may be ended at any moment."""

    def __init__(self, path: Path) -> None:
        self._name = path.stem
        self._bytes = 0
        self._file: BinaryIO = path.open("xb", buffering=0)
        self._start_s = time.monotonic()

    def add(self, sender: Side, line: bytes = b"", event: str = "") -> None:
        """Write down what came next. Raises Flooded."""
        written = msgspec.json.encode(Line(time.monotonic() - self._start_s, sender, line.decode("latin-1"), event))
        self._file.write(written + b"\n")
        self._bytes += len(written)
        if self._bytes > MAX_BYTES:
            raise Flooded(self._name)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()


def read_record(path: Path) -> Conversation:
    """Read what was written so far; a last line that is not whole is left out. Raises Flooded."""
    if path.stat().st_size > MAX_BYTES:
        raise Flooded(path.stem)
    conversation = Conversation(path.stem)
    for written in path.read_bytes().split(b"\n")[:-1]:
        line = msgspec.json.decode(written, type=Line)
        conversation.add(line.sender, line.line.encode("latin-1"), line.at_s, line.event)
    return conversation
