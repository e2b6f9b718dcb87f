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

import msgspec

from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.store.record import SEAL, SEAL_BYTES, TRAJECTORY_KINDS, VERSION, Record, is_sealed
from dragoman.store.sealed_log import BLOCK_BYTES, SealedDecoder

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
        """The method of a request or a notification; None for an answer, and for a line that is no message."""
        return self.message.get("method")

    @property
    def update(self) -> v1.SessionNotification | None:
        """A `session/update`, typed; None for anything else. Raises InvalidParams."""
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
    _check_header(next(lines, b""), path)
    decoder = SealedDecoder(kinds=TRAJECTORY_KINDS)
    for block in _blocks(lines, decoder):
        yield from _typed(decoder.feed(block), path)
        if decoder.torn is not None:
            break
    else:
        yield from _typed(decoder.finish(), path)
    if decoder.torn is False:
        raise TrajectoryUnreadable(path, f"what follows record {decoder.seq} is damaged: {decoder.problem}")


def is_header(line: bytes) -> bool:
    """Tell whether a file that begins with this line means to be a trajectory."""
    try:
        _decode_first(line)
    except _NOT_JSON:
        return False
    return True


class _About(msgspec.Struct):
    agent: str
    created: str


class _FirstLine(msgspec.Struct):
    dragoman: int
    trajectory: _About


_decode_first = msgspec.json.Decoder(_FirstLine).decode
_decode_message = msgspec.json.Decoder(dict[str, Any]).decode
_decode_text = msgspec.json.Decoder(str).decode
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def _check_header(line: bytes, path: str) -> None:
    try:
        version = _decode_first(line).dragoman
    except _NOT_JSON:
        raise TrajectoryUnreadable(path, "its first line is no header of a trajectory") from None
    if version != VERSION:
        raise TrajectoryUnreadable(path, f"it has format {version}, and this dragoman reads format {VERSION}")
    if not is_sealed(line):
        raise TrajectoryUnreadable(path, "its header is damaged")


def _blocks(lines: Iterator[bytes], decoder: SealedDecoder) -> Iterator[bytes]:
    """Yield lines, several at a time where they have no seal: looking for one after each would take ever longer."""
    block: list[bytes] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if SEAL.search(line, max(0, len(line) - SEAL_BYTES)) or size >= max(BLOCK_BYTES, decoder.held_bytes):
            yield b"".join(block)
            block.clear()
            size = 0
    if block:
        yield b"".join(block)


def _typed(records: list[Record], path: str) -> Iterator[TrajectoryRecord]:
    for record in records:
        try:
            yield _record(record)
        except _NOT_JSON:
            raise TrajectoryUnreadable(path, f"record {record.seq} is no record of a trajectory") from None


def _record(read: Record) -> TrajectoryRecord:
    match read.kind:
        case "sent" | "received":
            return TrajectoryRecord(read.seq, read.time, read.kind, _decode_message(read.data))
        case "event":
            return TrajectoryRecord(read.seq, read.time, "event", {}, event=_decode_text(read.data))
        case "sent_noise":
            return TrajectoryRecord(read.seq, read.time, "sent_noise", {}, _decode_text(read.data))
        case _:
            return TrajectoryRecord(read.seq, read.time, "noise", {}, _decode_text(read.data))
