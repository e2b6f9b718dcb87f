"""Version 1 of the format, which is only read: a header line, then records, one JSON object a line.

Session logs, journals of a bridge and trajectories had it before they were made of blocks (see `block`).

    {"dragoman":1,"session":{"id":…,"cwd":…,"additionalDirectories":[…],"created":…},"crc":"89abcdef"}
    {"seq":1,"time":1763240000000,"update":{…}}
    {"seq":2,"time":1763240000000,"turn":{…},"crc":"01234567"}

The header has the version of the format and the session that the log belongs to; it counts, whatever the path
says. A trajectory (`protocol.trajectory`) has another header and other kinds of records, and is sealed alike.

`seq` counts records from 1 without a gap, `time` is in milliseconds since 1970, and the third key is the record's
kind. Its value is the payload, byte for byte as it was given: replay can splice it into a fresh envelope without
decoding it.

Records are written many at a time, one write for each tick of the event loop, and the last record of
each write carries the seal: the CRC-32 of all bytes from the end of the last seal's line (or from the
beginning of the header) up to the comma before `"crc"`. So there is one checksum a write, however
large it is, and no byte of the file is outside one: the bytes after a checksum are always `"}` and a
newline. A payload cannot counterfeit a seal: it would have to be a JSON value that ends in a string
with bare quotes in it.

From that follows what can be known of a file that is not whole:

* What ends in a good seal is what was written.
* After the last seal there may be the beginning of one more write: whole lines, then part of one. That
  is a *torn* write, which was reported as done to no caller. Its whole lines are kept, the rest is dropped.
* Anything else is *damage*: a seal that does not fit, a whole line that is no record, a gap in `seq`.
  Nothing from the end of the last good seal on is trusted.
* A header that does not fit its seal makes the file unreadable as a session: which session it was, and
  where, is not known. It is not listed, cannot be opened, and is never touched.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from zlib import crc32

import msgspec
from msgspec import Raw

from dragoman.store.block import Header, Record
from dragoman.store.disk import READ, Disk
from dragoman.store.sealed_log import Damage

VERSION = 1

BLOCK_BYTES = 1 << 19
"""Two thousand records a time: the hop to a thread costs little beside them, and they stay in the CPU's cache."""

_NOT_RECORDS = (ValueError, msgspec.DecodeError, RecursionError)

KINDS = frozenset({"config", "message", "model", "permission", "title", "turn", "update"})
"""The kinds of records in logs; a new kind needs a new version, because an older reader would take it as damage.

`message` is only in the journals of a bridge.
"""

TRAJECTORY_KINDS = frozenset({"event", "noise", "received", "sent", "sent_noise"})
"""The kinds of records in trajectories."""

_SEAL_BEGIN = b',"crc":"'
SEAL_BYTES = len(b',"crc":"89abcdef"}\n')
SEAL = re.compile(rb',"crc":"([0-9a-f]{8})"\}\n')
"""The end of a write."""

_ABSENT = Raw(b"")


class _FirstLine(msgspec.Struct):
    dragoman: int
    session: Header
    crc: str = ""


class _Version(msgspec.Struct):
    dragoman: int


class _Line(msgspec.Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    seq: int
    time: int
    update: Raw = _ABSENT
    model: Raw = _ABSENT
    turn: Raw = _ABSENT
    config: Raw = _ABSENT
    title: Raw = _ABSENT
    permission: Raw = _ABSENT
    message: Raw = _ABSENT
    sent: Raw = _ABSENT
    received: Raw = _ABSENT
    noise: Raw = _ABSENT
    sent_noise: Raw = _ABSENT
    event: Raw = _ABSENT
    crc: str = ""


_NOT_UPDATES = tuple(sorted(KINDS - {"update"}))
_IN_TRAJECTORIES = ("sent", "received", "noise", "sent_noise", "event")
_decode_first_line = msgspec.json.Decoder(_FirstLine).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_lines = msgspec.json.Decoder(_Line).decode_lines


def decode_header(line: bytes) -> Header:
    """Read the first line of a log; raises ValueError with the mistake."""
    if not is_sealed(line):
        raise ValueError(_explain_header(line))
    if _decode_version(line).dragoman != VERSION:
        raise ValueError(_explain_header(line))
    return _decode_first_line(line).session


def is_sealed(line: bytes) -> bool:
    """Tell whether a line is a whole write, and its seal fits."""
    mark = SEAL.search(line, max(0, len(line) - SEAL_BYTES))
    return mark is not None and crc32(line[: mark.start()]) == int(mark[1], 16)


def sealed_end(block: bytes) -> tuple[int, bool]:
    """Return the end of the last write that is whole and good, and whether the one after it is damaged."""
    view = memoryview(block)
    end = 0
    at = block.find(_SEAL_BEGIN)  # a search by the pattern itself takes ten times as long
    while at >= 0:
        mark = SEAL.match(block, at)
        if mark is not None:
            if crc32(view[end:at]) != int(mark[1], 16):
                return end, True
            end = mark.end()
        at = block.find(_SEAL_BEGIN, at + 1)
    return end, False


def decode_records(lines: bytes, last_seq: int, kinds: frozenset[str] = KINDS) -> list[Record]:
    """Read whole lines; raises ValueError when they are not records of these kinds that follow `last_seq`."""
    if kinds is KINDS:
        records = [
            Record(line.seq, line.time, "update", line.update) if line.update is not _ABSENT else _other(line)
            for line in _decode_lines(lines)
        ]
    else:
        records = [_other(line, _IN_TRAJECTORIES) for line in _decode_lines(lines)]
    if [record.seq for record in records] != list(range(last_seq + 1, last_seq + 1 + len(records))):
        raise ValueError("records are missing or out of order")
    return records


def decode_unsealed(lines: bytes, last_seq: int, kinds: frozenset[str] = KINDS) -> list[Record]:
    """Read whole lines of a torn write, which no checksum vouches for, so that every byte is looked at."""
    str(lines, "utf-8")
    if b'"crc":' in lines and any(line.crc for line in _decode_lines(lines)):
        raise ValueError("a seal is broken")
    return decode_records(lines, last_seq, kinds)


def _other(line: _Line, kinds: Sequence[str] = _NOT_UPDATES) -> Record:
    for kind in kinds:
        data: Raw = getattr(line, kind)
        if data is not _ABSENT:
            return Record(line.seq, line.time, kind, data)
    raise ValueError(f"record {line.seq} is of no known kind")


def _explain_header(line: bytes) -> str:
    try:
        version = _decode_version(line).dragoman
    except (msgspec.DecodeError, UnicodeDecodeError):
        return "its first line is no header of a session log"
    if version != VERSION:
        return f"it has format {version}, and this dragoman reads format {VERSION}: use the dragoman that wrote it"
    return "its header is damaged"


class SealedDecoder:
    """Makes records of the bytes of a file, in blocks of any size, and trusts only records below a good seal."""

    def __init__(self, last_seq: int = 0, kinds: frozenset[str] = KINDS) -> None:
        self.seq = last_seq
        """The last record that was read."""
        self.size = 0
        """The number of bytes that can be trusted."""
        self.unsealed = 0
        """The number of these, at the end, that came from a torn write."""
        self.torn: bool | None = None
        """Why there will be no more records: True for a torn end, False for damage; None while all is well."""
        self.problem = ""
        """The damage."""
        self._kinds = kinds
        self._held = b""

    @property
    def held_bytes(self) -> int:
        """The number of bytes that wait for their seal."""
        return len(self._held)

    def feed(self, block: bytes) -> list[Record]:
        """Take the next bytes, and return the records of the writes that they complete."""
        self._held += block
        end, damaged = sealed_end(self._held)
        try:
            records = decode_records(self._held[:end], self.seq, self._kinds)
        except _NOT_RECORDS as error:
            self._stop(str(error), torn=False)
            return []
        self._trust(records, end)
        if damaged:
            self._stop("a seal does not fit", torn=False)
        return records

    def finish(self) -> list[Record]:
        """Return the records in whole lines of a write that was cut short: no more bytes come."""
        if not self._held:
            return []
        end = self._held.rfind(b"\n") + 1
        try:
            records = decode_unsealed(self._held[:end], self.seq, self._kinds)
        except _NOT_RECORDS as error:
            self._stop(str(error), torn=False)
            return []
        self._trust(records, end)
        self.unsealed = end
        self._stop("", torn=True)
        return records

    def _trust(self, records: list[Record], size: int) -> None:
        self.seq += len(records)
        self.size += size
        self._held = self._held[size:]

    def _stop(self, problem: str, *, torn: bool) -> None:
        self.torn = torn
        self.problem = problem
        self._held = b""


class RecordReader:
    """Reads the records of one file between two offsets; made for one thread at a time."""

    def __init__(self, disk: Disk, path: Path, start: int, end: int | None, *, last_seq: int = 0) -> None:
        self.fd = disk.open(path, READ)
        self._start = start
        self._end = os.fstat(self.fd).st_size if end is None else end
        self._decoder = SealedDecoder(last_seq)

    @property
    def seq(self) -> int:
        """The last record that was read."""
        return self._decoder.seq

    @property
    def trusted(self) -> int:
        """The end of the part that can be trusted."""
        return self._start + self._decoder.size

    @property
    def unsealed(self) -> int:
        """The number of bytes at its end that came from a torn write."""
        return self._decoder.unsealed

    @property
    def damage(self) -> Damage | None:
        """The part that was not read, once that is known."""
        if self._decoder.torn is None:
            return None
        return Damage(self._decoder.torn, self.seq, self.trusted, self._end - self.trusted)

    def close(self) -> None:
        """Close the file."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def read(self) -> list[Record]:
        """Return the next records; an empty list is the end."""
        decoder = self._decoder
        while decoder.torn is None:
            at = self.trusted + decoder.held_bytes
            # Twice as much each time, or a write of many blocks would be searched once for each of them.
            size = min(max(BLOCK_BYTES, decoder.held_bytes), self._end - at)
            block = os.pread(self.fd, size, at) if size > 0 else b""
            if not block:
                return decoder.finish()
            if records := decoder.feed(block):
                return records
        return []
