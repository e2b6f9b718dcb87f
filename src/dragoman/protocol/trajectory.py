"""A conversation between a client and an agent, kept in a file: every message of both sides, in order.

The file is made of blocks, as a session log is (see `store.block`), with a header and records of its own:

    {"dragoman":2,"trajectory":{"agent":"claude-agent-acp","created":"2026-11-15T12:00:00Z"}}
    →{"seal":{"first":0,"last":0,"time":1763240000000,"sum":"89abcdef"}}
    {"sent":{"jsonrpc":"2.0","id":1,"method":"initialize","params":{…}}}
    →{"seal":{"first":1,"last":1,"time":1763240000000,"records":[[0,81]],"sum":"01234567"}}
    {"jsonrpc":"2.0","id":1,"result":{…}}
    →{"seal":{"first":2,"last":2,"time":1763240000005,"sum":"01234567"}}

Lines of the wire are the messages that the client received, and `sent` is one that it sent. A message that begins
otherwise than with `jsonrpc` is in a record `received`. `noise` is a line of the agent that is no message, as a string,
and `sentNoise` one of the client. `event` is what became of the agent's process, as in `exited 1`. Trajectories of
version 1 (see `store.record`) are read too.

Values of environments and headers are replaced by `[hidden]`, wherever they are in a message, and so is what else of
an MCP server may be secret: its arguments, and all of its address but the place.
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
from dragoman.store import record
from dragoman.store.block import VERSION, Block, Record, find_blocks, read_torn
from dragoman.store.record import BLOCK_BYTES, SEAL, SEAL_BYTES, SealedDecoder

Kind = Literal["sent", "received", "noise", "sent_noise", "event"]

TRAJECTORY_KINDS = frozenset({"event", "noise", "received", "sent", "sentNoise"})
"""The kinds of records; a new kind needs a new version, because an older reader would take it as damage."""


class TrajectoryUnreadable(DragomanError):
    """A file is no trajectory, or it is damaged; the records before the damage were given."""

    def __init__(self, path: str, problem: str, line: int = 1) -> None:
        self.path = path
        self.problem = problem
        self.line = line
        """The number of the first line that cannot be read."""
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
    first = next(lines, b"")
    if _read_version(first, path) == VERSION:
        yield from _read_blocks(first, lines, path)
    elif not record.is_sealed(first):
        raise TrajectoryUnreadable(path, "its header is damaged")
    else:
        yield from _read_version1(lines, path)


def is_torn(data: bytes) -> bool:
    """Tell whether the last write to a trajectory was cut short."""
    if not data.endswith(b"\n"):
        return True
    is_in_blocks = _decode_first(data[: data.index(b"\n")]).dragoman == VERSION
    return is_in_blocks and not data[data.rfind(b"\n", 0, -1) + 1 :].startswith(_SEAL_HEAD)


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


_SEAL_HEAD = b"\t"


def _read_version(line: bytes, path: str) -> int:
    try:
        version = _decode_first(line).dragoman
    except _NOT_JSON:
        raise TrajectoryUnreadable(path, "its first line is no header of a trajectory") from None
    if version not in (record.VERSION, VERSION):
        raise TrajectoryUnreadable(path, f"it has format {version}, and this dragoman reads format {VERSION}")
    return version


def _read_blocks(first: bytes, lines: Iterator[bytes], path: str) -> Generator[TrajectoryRecord]:
    found, damaged = find_blocks(first + next(lines, b""), 0, 0)
    if damaged or not found.blocks:
        raise TrajectoryUnreadable(path, "its header is damaged")
    seq, line_number, time, checksum = 0, 3, found.blocks[0].time, found.checksum
    held: list[bytes] = []
    for line in lines:
        held.append(line)
        if not line.startswith(_SEAL_HEAD) or not line.endswith(b"\n"):
            continue
        found, damaged = find_blocks(b"".join(held), seq + 1, checksum)
        if damaged:
            raise _damage(path, seq, "a seal does not fit", line_number)
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


def _read_version1(lines: Iterator[bytes], path: str) -> Generator[TrajectoryRecord]:
    decoder = SealedDecoder(kinds=record.TRAJECTORY_KINDS)
    for block in _sealed_pieces(lines, decoder):
        yield from _typed(decoder.feed(block), path)
        if decoder.torn is not None:
            break
    else:
        yield from _typed(decoder.finish(), path)
    if decoder.torn is False:
        raise _damage(path, decoder.seq, decoder.problem, decoder.seq + 2)


def _damage(path: str, seq: int, problem: str, line: int) -> TrajectoryUnreadable:
    return TrajectoryUnreadable(path, f"what follows record {seq} is damaged: {problem}", line)


def _sealed_pieces(lines: Iterator[bytes], decoder: SealedDecoder) -> Iterator[bytes]:
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


def _typed(records: Iterable[Record], path: str) -> Iterator[TrajectoryRecord]:
    for read in records:
        try:
            yield _type(read)
        except _NOT_JSON:
            raise TrajectoryUnreadable(path, f"record {read.seq} is no record of a trajectory") from None


def _type(read: Record) -> TrajectoryRecord:
    match read.kind:
        case "sent" | "received":
            return TrajectoryRecord(read.seq, read.time, read.kind, _decode_message(read.data))
        case "event":
            return TrajectoryRecord(read.seq, read.time, "event", {}, event=_decode_text(read.data))
        case "sent_noise" | "sentNoise":
            return TrajectoryRecord(read.seq, read.time, "sent_noise", {}, _decode_text(read.data))
        case _:
            return TrajectoryRecord(read.seq, read.time, "noise", {}, _decode_text(read.data))
