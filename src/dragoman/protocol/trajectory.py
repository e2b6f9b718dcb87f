"""A conversation between a client and an agent, kept in a file: every message of both sides, in order.

The file has the form of a session log (see `store.record`): a header line, then a record a line, numbered and dated,
the last of each write sealed with a checksum. What differs is what is told:

    {"dragoman":1,"trajectory":{"agent":"claude-agent-acp","created":"2026-11-15T12:00:00Z"},"crc":"89abcdef"}
    {"seq":1,"time":1763240000000,"sent":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{…}},"crc":"01234567"}
    {"seq":2,"time":1763240000005,"received":{"jsonrpc":"2.0","id":1,"result":{…}},"crc":"01234567"}

`sent` and `received` are whole messages, as seen from the client. `noise` is a line of the agent that is no message,
as a string, and `sentNoise` one of the client. `event` is what became of the agent's process, as in `exited 1`.
Values of environments and headers are replaced by `[hidden]`, wherever they are in a message, and so is what else of
an MCP server may be secret: its arguments, and all of its address but the place.
"""

import os
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import msgspec

from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.store.record import SEAL, SEAL_BYTES, VERSION

Kind = Literal["sent", "received", "noise", "sent_noise", "event"]


class TrajectoryUnreadable(DragomanError):
    """A file is no trajectory, or it is damaged; the records before the damage were given."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the trajectory in {path} cannot be read: {problem}; the file is left as it is")


class TrajectoryRecord(msgspec.Struct, frozen=True):
    """One line that was said, or an event of the process."""

    seq: int
    time: int
    """In milliseconds since 1970."""
    kind: Kind
    message: dict[str, Any]
    """The message; empty for noise and for an event."""
    noise: str = ""
    event: str = ""

    @property
    def method(self) -> str | None:
        """The method of a request or a notification; None for an answer, and for what is no message."""
        return self.message.get("method")

    @property
    def update(self) -> v1.SessionNotification | None:
        """What a `session/update` says, typed; None for anything else. Raises InvalidParams."""
        if self.method != SESSION_UPDATE.name:
            return None
        return decode_params(SESSION_UPDATE, msgspec.json.encode(self.message.get("params")), lenient=True)


def read_trajectory(path: str | os.PathLike[str]) -> Generator[TrajectoryRecord]:
    """Yield the records of a trajectory; one whose last write was cut short ends with the last whole record.

    Raises TrajectoryUnreadable when the file cannot be opened, is no trajectory, or is damaged.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 -- closed below; only opening is translated
    except OSError as error:
        raise TrajectoryUnreadable(os.fspath(path), error.strerror or "it cannot be opened") from error
    with file:
        yield from read_records(file, os.fspath(path))


def read_records(lines: Iterator[bytes], path: str) -> Generator[TrajectoryRecord]:
    """Yield the records of a trajectory that is read already, line by line. Raises TrajectoryUnreadable."""
    reading = _Lines(path, lines)
    reading.read_header()
    yield from reading.records()


def is_header(line: bytes) -> bool:
    """Tell whether a file that begins with this line means to be a trajectory."""
    try:
        _decode_first(line)
    except _NOT_JSON:
        return False
    return True


class _Line(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    seq: int
    time: int
    sent: dict[str, Any] | None = None
    received: dict[str, Any] | None = None
    noise: str | None = None
    sent_noise: str | None = None
    event: str | None = None
    crc: str = ""


class _About(msgspec.Struct):
    agent: str
    created: str


class _FirstLine(msgspec.Struct):
    dragoman: int
    trajectory: _About


_decode_line = msgspec.json.Decoder(_Line).decode
_decode_first = msgspec.json.Decoder(_FirstLine).decode
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Lines:
    """Reads line by line, and holds a write back until its seal vouches for it."""

    def __init__(self, path: str, file: Iterator[bytes]) -> None:
        self._path = path
        self._file = file
        self._crc = 0
        self._seq = 0
        self._sealed_seq = 0

    def read_header(self) -> None:
        first = next(self._file, b"")
        try:
            version = _decode_first(first).dragoman
        except _NOT_JSON:
            raise self._unreadable("its first line is no header of a trajectory") from None
        if version != VERSION:
            raise self._unreadable(f"it has format {version}, and this dragoman reads format {VERSION}")
        if not self._is_sealed(first):
            raise self._unreadable("its header is damaged")

    def records(self) -> Iterator[TrajectoryRecord]:
        held: list[TrajectoryRecord] = []
        for line in self._file:
            if not line.endswith(b"\n"):  # the beginning of a record, all that was written of it
                break
            is_sealed = self._is_sealed(line)
            held.append(self._decode(line))
            if is_sealed:
                self._sealed_seq = self._seq
                yield from held
                held.clear()
        yield from held

    def _is_sealed(self, line: bytes) -> bool:
        mark = SEAL.search(line, max(0, len(line) - SEAL_BYTES))
        if mark is None:
            self._crc = crc32(line, self._crc)
            return False
        if crc32(line[: mark.start()], self._crc) != int(mark[1], 16):
            raise self._unreadable(f"what follows record {self._sealed_seq} is damaged")
        self._crc = 0
        return True

    def _decode(self, line: bytes) -> TrajectoryRecord:
        try:
            read = _decode_line(line)
        except _NOT_JSON:
            raise self._unreadable(f"what follows record {self._seq} is no record") from None
        if read.seq != self._seq + 1:
            raise self._unreadable(f"records are missing after record {self._seq}")
        self._seq = read.seq
        return _record(read)

    def _unreadable(self, problem: str) -> TrajectoryUnreadable:
        return TrajectoryUnreadable(self._path, problem)


def _record(read: _Line) -> TrajectoryRecord:
    if read.sent is not None:
        return TrajectoryRecord(read.seq, read.time, "sent", read.sent)
    if read.received is not None:
        return TrajectoryRecord(read.seq, read.time, "received", read.received)
    if read.event is not None:
        return TrajectoryRecord(read.seq, read.time, "event", {}, event=read.event)
    if read.sent_noise is not None:
        return TrajectoryRecord(read.seq, read.time, "sent_noise", {}, read.sent_noise)
    return TrajectoryRecord(read.seq, read.time, "noise", {}, read.noise or "")
