"""Writes a trajectory. `trajectory` describes the file."""

import logging
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from dragoman.errors import DragomanError
from dragoman.recording.secrecy import hide_secrets
from dragoman.recording.trajectory import TRAJECTORY_KINDS
from dragoman.store.block import LINE_HEAD, Draft, encode_first, now_ms
from dragoman.store.block_log import SealedWriter
from dragoman.store.disk import Disk
from dragoman.wire import Malformed, Oversized
from dragoman.wire.message import parse_mended

log = logging.getLogger(__name__)

MAX_NOISE_CHARACTERS = 10_000
"""The length to which a line that is not a message is cut, enough to recognise it."""

SENT, RECEIVED, NOISE, SENT_NOISE, EVENT = "sent", "received", "noise", "sentNoise", "event"

Entry = tuple[str, bytes]
"""A line to be written: its kind, which is one of the constants above, and its value."""


class RecordingError(DragomanError):
    """The file of a recording cannot be written. The records before the error are kept."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        step = "use a file that does not exist yet" if isinstance(error, FileExistsError) else "use another file"
        super().__init__(f"cannot record to {path}: {error.strerror}; {step}")


class TrajectoryFile:
    """A trajectory file for writing. Raises RecordingError if the file cannot be created or already exists.

    If a later write fails, `failure` has the error and nothing more is written.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "") -> None:
        self.failure: RecordingError | None = None
        self._seq = 0
        self._checksum = 0
        self._writer = SealedWriter(Disk(), Path(path))
        self._is_open = True
        about = {"agent": agent, "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        self._write(*encode_first({"trajectory": about}, now_ms()))
        if self.failure is not None:
            raise self.failure

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._writer.path

    def append(self, entries: Sequence[Entry], time_ms: int | None = None) -> None:
        """Write records in one sealed write. `time_ms` is when they were sent or received (default: now)."""
        if entries and self._is_open:
            now = now_ms() if time_ms is None else time_ms
            if self._write(*_draft(entries).seal(self._seq + 1, now, self._checksum)):
                self._seq += len(entries)

    def close(self) -> None:
        """Stop writing and close the file."""
        self._is_open = False
        with suppress(OSError):
            self._writer.close()

    def _write(self, block: bytes | bytearray, checksum: int) -> bool:
        try:
            self._writer.write(block)
        except OSError as error:
            self.failure = RecordingError(str(self.path), error)
            self.close()
            return False
        self._checksum = checksum
        return True


def _draft(entries: Sequence[Entry]) -> Draft:
    draft = Draft(TRAJECTORY_KINDS)
    for is_line, group in groupby(entries, _is_line):
        if is_line:
            draft.add_lines(b"".join([_one_line(payload) + b"\n" for _, payload in group]))
        else:
            for kind, payload in group:
                draft.add_record(kind, _one_line(payload))
    return draft


def _is_line(entry: Entry) -> bool:
    return entry[0] == RECEIVED and entry[1].startswith(LINE_HEAD)


def _one_line(payload: bytes) -> bytes:
    return payload.strip().replace(b"\n", b" ") if b"\n" in payload else payload


class Recorder:
    """Records one connection. Use it as a context manager.

    Raises RecordingError if the file cannot be created or already exists. If a later write fails, the conversation
    continues without recording, and leaving the context raises RecordingError.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "") -> None:
        self._file = TrajectoryFile(path, agent)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def failure(self) -> RecordingError | None:
        """The error that stopped the recording, or None."""
        return self._file.failure

    def sent(self, lines: bytes | bytearray | memoryview) -> None:
        """Record the lines that are sent to the agent, each with its newline."""
        self._append([(SENT, hide_secrets(line)) for line in bytes(lines).split(b"\n") if line.strip()])

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Record the lines that are received from the agent."""
        self._append([_received(line) for line in lines])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
        if self.failure is not None and error is None:
            raise self.failure

    def _append(self, entries: Sequence[Entry]) -> None:
        had_failed = self.failure is not None
        self._file.append(entries)
        if self.failure is not None and not had_failed:
            log.warning("%s. Nothing more is recorded", self.failure)


def _oversized_noise(line: Oversized) -> bytes:
    """Return the text that replaces a line that was too long."""
    return msgspec.json.encode(f"a line of more than {line.max_bytes} bytes")


def text_noise(line: bytes) -> bytes:
    """Return a line that is not a message, as a JSON string."""
    return msgspec.json.encode(line.decode(errors="replace").strip()[:MAX_NOISE_CHARACTERS])


def _received(line: bytes | Oversized) -> Entry:
    if not isinstance(line, bytes):
        return NOISE, _oversized_noise(line)
    message, mended = parse_mended(line)
    return (NOISE, text_noise(line)) if isinstance(message, Malformed) else (RECEIVED, hide_secrets(mended))
