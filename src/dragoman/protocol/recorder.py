"""Writing a trajectory; `trajectory` describes the file."""

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
from dragoman.protocol.secrecy import hide_secrets
from dragoman.protocol.trajectory import TRAJECTORY_KINDS
from dragoman.store.block import LINE_HEAD, Draft, encode_first, now_ms
from dragoman.store.disk import Disk
from dragoman.store.sealed_log import SealedWriter
from dragoman.wire import Malformed, Oversized, parse
from dragoman.wire.message import replace_lone_surrogates

log = logging.getLogger(__name__)

MAX_NOISE_CHARACTERS = 10_000
"""A line that is no message is kept only as far as it can be recognised."""

SENT, RECEIVED, NOISE, SENT_NOISE, EVENT = "sent", "received", "noise", "sentNoise", "event"

Entry = tuple[str, bytes]
"""A line to be written: one of the kinds above, and its value."""


class NotRecorded(DragomanError):
    """The file of a recording cannot be written; the records before are kept."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        step = "name a file that is not there yet" if isinstance(error, FileExistsError) else "name another file"
        super().__init__(f"cannot record to {path}: {error.strerror}; {step}")


class TrajectoryFile:
    """A trajectory being written. Raises NotRecorded when the file cannot be made, or is there already.

    If it cannot be written later on, `failure` says so, and nothing more is written.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "") -> None:
        self.failure: NotRecorded | None = None
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

    @property
    def count(self) -> int:
        """The number of records that were written."""
        return self._seq

    def append(self, entries: Sequence[Entry], time_ms: int | None = None) -> None:
        """Write records in one sealed write, with the time at which they were said (default: now)."""
        if entries and self._is_open:
            now = now_ms() if time_ms is None else time_ms
            if self._write(*_draft(entries).seal(self._seq + 1, now, self._checksum)):
                self._seq += len(entries)

    def close(self) -> None:
        """Write no more."""
        self._is_open = False
        with suppress(OSError):
            self._writer.close()

    def _write(self, block: bytes | bytearray, checksum: int) -> bool:
        try:
            self._writer.write(block)
        except OSError as error:
            self.failure = NotRecorded(str(self.path), error)
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
    """Records one connection, and is left with `with`.

    Raises NotRecorded when the file cannot be made, or is there already. If it cannot be written later on, the
    conversation goes on without it, and leaving raises NotRecorded.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "") -> None:
        self._file = TrajectoryFile(path, agent)

    @property
    def path(self) -> Path:
        """The path of the file."""
        return self._file.path

    @property
    def failure(self) -> NotRecorded | None:
        """Why nothing more is recorded, if so."""
        return self._file.failure

    def sent(self, lines: bytes | bytearray | memoryview) -> None:
        """Take the lines that go to the agent, each with its newline."""
        self._append([(SENT, hide_secrets(line)) for line in bytes(lines).split(b"\n") if line.strip()])

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take the bytes that come from the agent."""
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
        was_well = self.failure is None
        self._file.append(entries)
        if was_well and self.failure is not None:
            log.warning("%s; nothing more is recorded", self.failure)


def _oversized_noise(line: Oversized) -> bytes:
    """Return the text in place of a line that was too long."""
    return msgspec.json.encode(f"a line of more than {line.max_bytes} bytes")


def text_noise(line: bytes) -> bytes:
    """Return a line that is no message as a JSON string."""
    return msgspec.json.encode(line.decode(errors="replace").strip()[:MAX_NOISE_CHARACTERS])


def _received(line: bytes | Oversized) -> Entry:
    if not isinstance(line, bytes):
        return NOISE, _oversized_noise(line)
    for message in (line, replace_lone_surrogates(line)):
        if message is not None and not isinstance(parse(message), Malformed):
            return RECEIVED, hide_secrets(message)
    return NOISE, text_noise(line)
