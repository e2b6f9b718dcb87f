"""A recorded conversation between a client and an agent: every message of both sides, in order.

The file consists of blocks like a session log (see `store.block`), with a different header and different records:

    {"dragoman":1,"trajectory":{"agent":"claude-agent-acp","created":"2026-11-15T12:00:00Z"}}
    →{"seal":{"first":0,"last":0,"time":1763240000000,"sum":"89abcdef"}}
    {"sent":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{…}}}
    →{"seal":{"first":1,"last":1,"time":1763240000000,"records":[[0,81]],"sum":"01234567"}}
    {"jsonrpc":"2.0","id":1,"result":{…}}
    →{"seal":{"first":2,"last":2,"time":1763240000005,"sum":"01234567"}}

A plain line is a message that the client received. `sent` is a message that the client sent. A received message that
does not begin with `jsonrpc` is stored as a `received` record. `noise` is a line of the agent that is not a message,
as a string, and `sentNoise` is such a line of the client. `event` describes the agent's process, as in `exited 1`.

The values of environments and headers are replaced by `[hidden]` wherever they occur in a message. The arguments of an
MCP server are replaced as well, and its address is reduced to scheme, host and path.
"""

import os
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import msgspec

from dragoman.errors import DragomanError
from dragoman.protocol import v1
from dragoman.protocol.decode import decode_params
from dragoman.protocol.methods import SESSION_UPDATE
from dragoman.store.block import VERSION, Block, Record, find_blocks, read_torn

Kind = Literal["sent", "received", "noise", "sent_noise", "event"]

TRAJECTORY_KINDS = frozenset({"event", "noise", "received", "sent", "sentNoise"})
"""The kinds of records. A new kind needs a new version, because an older reader would report it as damage."""


class TrajectoryError(DragomanError):
    """A file is not a trajectory, or it is damaged. The records before the damage were returned."""

    def __init__(self, path: str, problem: str, line: int = 1) -> None:
        self.path = path
        self.problem = problem
        self.line = line
        """The number of the first line that cannot be read."""
        super().__init__(f"the trajectory in {path} cannot be read: {problem}; the file was not changed")


class TrajectoryRecord(msgspec.Struct, frozen=True):
    """One message or other line of the conversation, or an event of the agent's process."""

    seq: int
    time: int
    """Milliseconds since 1970."""
    kind: Kind
    message: dict[str, Any]
    """The message. Empty for noise and events."""
    noise: str = ""
    event: str = ""

    @property
    def method(self) -> str | None:
        """The method of a request or notification. None for a response, and for a line that is not a message."""
        return self.message.get("method")

    @property
    def update(self) -> v1.SessionNotification | None:
        """The decoded `session/update`, or None for any other record. Raises InvalidParamsError."""
        if self.method != SESSION_UPDATE.name:
            return None
        return decode_params(SESSION_UPDATE, msgspec.json.encode(self.message.get("params")), lenient=True)


def read_trajectory(path: str | os.PathLike[str]) -> Generator[TrajectoryRecord]:
    """Yield the records of a trajectory. If the last write was cut short, end with the last whole record.

    Raises TrajectoryError if the file cannot be opened, is not a trajectory, or is damaged.
    """
    try:
        file = Path(path).open("rb")  # noqa: SIM115 -- closed below, because only errors of opening are translated
    except OSError as error:
        raise TrajectoryError(os.fspath(path), error.strerror or "it cannot be opened") from error
    with file:
        yield from read_records(file, os.fspath(path))


def read_records(lines: Iterator[bytes], path: str) -> Generator[TrajectoryRecord]:
    """Yield the records of a trajectory, given its lines. Raises TrajectoryError."""
    first = next(lines, b"")
    _check_version(first, path)
    yield from _read_blocks(first, lines, path)


def is_torn(data: bytes) -> bool:
    """Return whether the last write to a trajectory was cut short."""
    if not data.endswith(b"\n"):
        return True
    return not data[data.rfind(b"\n", 0, -1) + 1 :].startswith(_SEAL_HEAD)


def is_header(line: bytes) -> bool:
    """Return whether a file that begins with this line is meant to be a trajectory."""
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


_SEAL_HEAD = b"\t"


def _check_version(line: bytes, path: str) -> None:
    try:
        version = _decode_first(line).dragoman
    except _NOT_JSON:
        raise TrajectoryError(path, "its first line is not a trajectory header") from None
    if version != VERSION:
        raise TrajectoryError(path, f"it has format {version}, and this dragoman reads format {VERSION}")


def _read_blocks(first: bytes, lines: Iterator[bytes], path: str) -> Generator[TrajectoryRecord]:
    found, damaged = find_blocks(first + next(lines, b""), 0, 0)
    if damaged or not found.blocks:
        raise TrajectoryError(path, "its header is damaged")
    seq, line_number, time, checksum = 0, 3, found.blocks[0].time, found.checksum
    held: list[bytes] = []
    for line in lines:
        held.append(line)
        if not line.startswith(_SEAL_HEAD) or not line.endswith(b"\n"):
            continue
        found, damaged = find_blocks(b"".join(held), seq + 1, checksum)
        if damaged:
            raise _damage(path, seq, "a checksum does not match", line_number)
        yield from _typed(_records_of(found.blocks[0]), path)
        seq, time, checksum = found.blocks[0].last, found.blocks[0].time, found.checksum
        line_number += len(held)
        held.clear()
    rest = b"".join(held)
    try:
        block = read_torn(rest[: rest.rfind(b"\n") + 1], seq + 1, time, TRAJECTORY_KINDS)
    except (ValueError, *_NOT_JSON) as error:
        raise _damage(path, seq, str(error), line_number) from None
    if block is not None:
        yield from _typed(_records_of(block), path)


def _records_of(block: Block) -> Iterator[Record]:
    records = {found.seq: found for found in block.records()}
    for seq, line in block.numbered_lines():
        yield records.get(seq) or Record(seq, block.time, "received", msgspec.Raw(line))


def _damage(path: str, seq: int, problem: str, line: int) -> TrajectoryError:
    return TrajectoryError(path, f"the file is damaged after record {seq}: {problem}", line)


def _typed(records: Iterable[Record], path: str) -> Iterator[TrajectoryRecord]:
    for read in records:
        try:
            yield _type(read)
        except _NOT_JSON:
            raise TrajectoryError(path, f"record {read.seq} is not a trajectory record") from None


def _type(read: Record) -> TrajectoryRecord:
    match read.kind:
        case "sent" | "received":
            return TrajectoryRecord(read.seq, read.time, read.kind, _decode_message(read.data))
        case "event":
            return TrajectoryRecord(read.seq, read.time, "event", {}, event=_decode_text(read.data))
        case "sentNoise":
            return TrajectoryRecord(read.seq, read.time, "sent_noise", {}, _decode_text(read.data))
        case _:
            return TrajectoryRecord(read.seq, read.time, "noise", {}, _decode_text(read.data))
