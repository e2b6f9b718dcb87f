"""Version 1 of the format: a header line, then records, one JSON object a line.

Journals of a bridge and trajectories have it. Session logs had it before they were made of blocks (see `block`).

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
with bare quotes in it. `sealed_log` has the one reader and the one writer of such files.

From that follows what can be known of a file that is not whole:

* What ends in a good seal is what was written.
* After the last seal there may be the beginning of one more write: whole lines, then part of one. That
  is a *torn* write, which was reported as done to no caller. Its whole lines are kept and sealed, the rest is
  dropped, before anything is appended.
* Anything else is *damage*: a seal that does not fit, a whole line that is no record, a gap in `seq`.
  Nothing from the end of the last good seal on is trusted. The file is kept aside, and the log goes on
  in a new one that holds the trusted part.
* A header that does not fit its seal makes the file unreadable as a session: which session it was, and
  where, is not known. It is not listed, cannot be opened, and is never touched.
"""

import re
from collections.abc import Sequence
from zlib import crc32

import msgspec
from msgspec import Raw

from dragoman.store.block import Header, Record

VERSION = 1

KINDS = frozenset({"config", "message", "model", "permission", "title", "turn", "update"})
"""The kinds of records in logs; a new kind needs a new version, because an older reader would take it as damage.

`message` is only in the journals of a bridge, which no older reader knows of.
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


KEYS = {kind: b'"%b":' % kind.encode() for kind in KINDS}
"""Each kind's key as it is written."""

_NOT_UPDATES = tuple(sorted(KINDS - {"update"}))
_IN_TRAJECTORIES = ("sent", "received", "noise", "sent_noise", "event")
_decode_first_line = msgspec.json.Decoder(_FirstLine).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_lines = msgspec.json.Decoder(_Line).decode_lines


def encode_header(header: Header) -> bytes:
    """Make the first line of a log."""
    line = msgspec.json.encode({"dragoman": VERSION, "session": header})
    return seal(line[:-1])


def decode_header(line: bytes) -> Header:
    """Read the first line of a log; raises ValueError with the mistake."""
    if not is_sealed(line):
        raise ValueError(_explain_header(line))
    if _decode_version(line).dragoman != VERSION:
        raise ValueError(_explain_header(line))
    return _decode_first_line(line).session


def encode_write(pending: Sequence[tuple[bytes, Sequence[bytes]]], last_seq: int, time: int) -> bytearray:
    """Make one sealed write of records, given as key and payloads, that follow `last_seq`."""
    records: list[bytes] = []
    for key, payloads in pending:
        between = b',"time":%d,%b' % (time, key)
        records += map(between.join, zip(_numbers(last_seq + 1, len(payloads)), payloads, strict=True))
        last_seq += len(payloads)
    records[0] = b'{"seq":' + records[0]
    body = bytearray(b'}\n{"seq":').join(records)  # grows in place, where bytes would be copied to be sealed
    body += b',"crc":"%08x"}\n' % crc32(body)
    return body


def _numbers(first: int, count: int) -> list[bytes]:
    """Write numbers; formatting one after the other would take as long as all the rest of a write."""
    return msgspec.json.encode(list(range(first, first + count)))[1:-1].split(b",")


def seal(body: bytes) -> bytes:
    """Finish a write that lacks nothing but the end of its last record."""
    return b'%b,"crc":"%08x"}\n' % (body, crc32(body))


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
