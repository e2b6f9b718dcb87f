"""A conversation with an agent, kept in a file: every message of both sides, in order.

The file has the form of a session log (see `store.record`): a header line, then a record a line, numbered and dated,
the last of each write sealed with a checksum. What differs is what is told:

    {"dragoman":1,"trajectory":{"agent":"claude-agent-acp","created":"2026-11-15T12:00:00Z"},"crc":"89abcdef"}
    {"seq":1,"time":1763240000000,"sent":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{…}},"crc":"01234567"}
    {"seq":2,"time":1763240000005,"received":{"jsonrpc":"2.0","id":1,"result":{…}},"crc":"01234567"}

`sent` and `received` are whole messages, as seen from the client. `noise` is a line of the agent that is no message,
as a string. Values of environments and headers are replaced by `[hidden]`, wherever they are in a message, and so is
what else of an MCP server may be secret: its arguments, and all of its address but the place.
"""

import logging
import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from zlib import crc32

import msgspec

from dragoman.client.secrecy import hide_secrets
from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.store.record import SEAL, SEAL_BYTES, VERSION, encode_write, seal
from dragoman.wire import Malformed, Oversized, parse
from dragoman.wire.surrogates import without_halves

log = logging.getLogger(__name__)

MAX_NOISE_CHARACTERS = 10_000
"""What is no message is kept only as far as it says what it was."""

_SENT, _RECEIVED, _NOISE = b'"sent":', b'"received":', b'"noise":'
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC


class NotRecorded(DragomanError):
    """The file that was to be recorded to cannot be written; what was written before is kept."""

    def __init__(self, path: str, error: OSError) -> None:
        self.path = path
        self.errno = error.errno
        step = "name a file that is not there yet" if isinstance(error, FileExistsError) else "name another file"
        super().__init__(f"cannot record to {path}: {error.strerror}; {step}")


class TrajectoryUnreadable(DragomanError):
    """A file is no trajectory, or it is damaged; the records before the damage were given."""

    def __init__(self, path: str, problem: str) -> None:
        self.path = path
        self.problem = problem
        super().__init__(f"the trajectory in {path} cannot be read: {problem}; the file is left as it is")


class TrajectoryRecord(msgspec.Struct, frozen=True):
    """One line that was said."""

    seq: int
    time: int
    """In milliseconds since 1970."""
    kind: Literal["sent", "received", "noise"]
    message: dict[str, Any]
    """The message; empty for noise."""
    noise: str = ""

    @property
    def method(self) -> str | None:
        """The method of a request or a notification; None for an answer, and for noise."""
        return self.message.get("method")

    @property
    def update(self) -> v1.SessionNotification | None:
        """What a `session/update` says, typed; None for anything else. Raises InvalidParams."""
        if self.method != SESSION_UPDATE.name:
            return None
        return decode_params(SESSION_UPDATE, msgspec.json.encode(self.message.get("params")), lenient=True)


class Recorder:
    """Writes a trajectory; made for one connection, and left with `with`.

    Raises NotRecorded when the file cannot be made, or is there already. If it cannot be written later on, the
    conversation goes on without it, and leaving raises NotRecorded.
    """

    def __init__(self, path: str | os.PathLike[str], agent: str = "") -> None:
        self.path = Path(path)
        self.failure: NotRecorded | None = None
        self._seq = 0
        self._fd = self._open()
        about = {"agent": agent, "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        self._write(seal(msgspec.json.encode({"dragoman": VERSION, "trajectory": about})[:-1]))

    def sent(self, lines: bytes | bytearray) -> None:
        """Take what goes to the agent: lines that end in a newline each."""
        self._record([(_SENT, hide_secrets(line)) for line in bytes(lines).split(b"\n") if line.strip()])

    def received(self, lines: Sequence[bytes | Oversized]) -> None:
        """Take what comes from the agent."""
        self._record([_received(line) for line in lines])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()
        if self.failure is not None and error is None:
            raise self.failure

    def _open(self) -> int:
        try:
            return os.open(self.path, _FLAGS, 0o600)
        except OSError as error:
            raise NotRecorded(str(self.path), error) from error

    def _record(self, records: Sequence[tuple[bytes, bytes]]) -> None:
        if records and self._fd >= 0:
            now = time.time_ns() // 1_000_000
            self._write(encode_write([(key, [payload]) for key, payload in records], self._seq, now))
            self._seq += len(records)

    def _write(self, data: bytes | bytearray) -> None:
        try:
            written = 0
            while written < len(data):
                written += os.write(self._fd, memoryview(data)[written:])
        except OSError as error:
            self.failure = NotRecorded(str(self.path), error)
            log.warning("%s; nothing more is recorded", self.failure)
            self._close()

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)


def read_trajectory(path: str | os.PathLike[str]) -> Generator[TrajectoryRecord]:
    """Yield the records of a trajectory; one whose last write was cut short ends with the last whole record.

    Raises TrajectoryUnreadable when the file cannot be opened, is no trajectory, or is damaged.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 -- closed below; only opening is translated
    except OSError as error:
        raise TrajectoryUnreadable(os.fspath(path), error.strerror or "it cannot be opened") from error
    with file:
        lines = _Lines(os.fspath(path), file)
        lines.read_header()
        yield from lines.records()


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    seq: int
    time: int
    sent: dict[str, Any] | None = None
    received: dict[str, Any] | None = None
    noise: str | None = None
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
        if read.sent is not None:
            return TrajectoryRecord(read.seq, read.time, "sent", read.sent)
        if read.received is not None:
            return TrajectoryRecord(read.seq, read.time, "received", read.received)
        return TrajectoryRecord(read.seq, read.time, "noise", {}, read.noise or "")

    def _unreadable(self, problem: str) -> TrajectoryUnreadable:
        return TrajectoryUnreadable(self._path, problem)


def _received(line: bytes | Oversized) -> tuple[bytes, bytes]:
    if not isinstance(line, bytes):
        return _NOISE, msgspec.json.encode(f"a line of more than {line.max_bytes} bytes")
    for message in (line, without_halves(line)):
        if message is not None and not isinstance(parse(message), Malformed):
            return _RECEIVED, hide_secrets(message)
    return _NOISE, msgspec.json.encode(line.decode(errors="replace").strip()[:MAX_NOISE_CHARACTERS])
