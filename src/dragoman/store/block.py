"""The format of session logs, journals and trajectories: blocks of lines, each block closed by a seal.

    {"dragoman":2,"session":{"id":"S","cwd":…,"additionalDirectories":[…],"created":…}}
    →{"seal":{"first":0,"last":0,"time":1763240000000,"sum":"89abcdef"}}
    {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{…}}}
    {"turn":{"event":"end",…}}
    →{"seal":{"first":1,"last":2,"time":1763240000123,"records":[[84,27]],"sum":"01234567"}}

Each line is one JSON object; → is a tab. The lines of one write to the file, or of several small ones, are a *block*,
and the line after them is its *seal*. The first block is the header alone: the version of the format, and whose log
this is; its word counts, whatever the path says. A trajectory has `"trajectory"` there, and kinds of records of its own
(`protocol.trajectory`). Three beginnings tell the lines apart:

* `{"jsonrpc":` is a line of the wire, to the byte as the peer was sent it. To replay a log is to copy these lines.
  A message of an agent that begins otherwise has its `jsonrpc` moved to the front; the rest stays as it came.
* A tab and `{"seal":` is a seal. JSON allows a tab before a value, so that any tool reads the line, and never inside a
  string. A search for the one byte takes a fifth of the time of a search for a word, and that is the only look at the
  inside of a block besides its checksum.
* Everything else is a *record* for ourselves: an object with one key, its kind. No peer is ever sent it.

A seal has the numbers of the first and the last line of its block, counted from 1 (the header is line 0) without a
gap and without the seals; the time of the last write in milliseconds since 1970; the places of the records, as offset
and length without the newline from the beginning of the block, left out if there is none; and the sum. So a reader that
has checked the sum knows which runs of bytes are for the peer without a look at any line.

The sum is the CRC-32 of the bytes of the block and of its seal up to `,"sum":`, begun with the sum of the seal before
(with 0 for the header). That is a chain: a block that is missing, doubled, moved or of another file does not fit. No
byte is outside a sum: what follows one is always `"}}` and a newline.

No JSON line has a newline inside, so that a newline, a tab and `{"seal":` are found at the end of a block only. Other
line separators of Unicode are ordinary characters here.

From that follows what can be known of a file that is not whole:

* What ends in a good seal is what was written.
* After the last seal there may be the beginning of one more block: whole lines, then part of one. Its writer died. The
  whole lines may have been shown, so they are kept and sealed. A part of a line is a *torn* write, and is dropped.
* Anything else is *damage*: a sum that does not fit, a gap in the numbers, a whole line behind the last seal that
  cannot be a line of a log. Nothing from the end of the last good seal on is trusted.
"""

import re
import time
from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec
from msgspec import Raw

VERSION = 2

Rename = Callable[[bytes], bytes]
"""Gives whole lines of one session to another."""

KINDS = frozenset({"client", "config", "model", "permission", "title", "turn"})
"""What a record can be. An older reader ignores a kind that it does not know inside a sealed block, and takes it as
damage in a torn write: so a record of a new kind is sealed by the write that brings it."""

LINE_HEAD = b'{"jsonrpc":'
"""The beginning of each line of the wire."""

SEAL_MARK = b'\n\t{"seal":'
"""The end of the last line of a block, and the beginning of its seal."""

_SEAL = re.compile(
    rb'\n\t\{"seal":\{"first":(\d{1,15}),"last":(\d{1,15}),"time":(\d{1,15})(?:,"records":(\[[\d,\[\]]*\]))?'
    rb',"sum":"([0-9a-f]{8})"\}\}\n'
)
_SUM_BYTES = len(b',"sum":"89abcdef"}}\n')
_NOT_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Header(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whose log this is."""

    id: str
    cwd: str
    additional_directories: list[str]
    created: str
    """ISO 8601 in UTC, with a Z."""
    forked_from: str | None = None
    origin: str | None = None
    """The program that began it, if it named itself: `run` for `dragoman run`."""


class Record(msgspec.Struct, gc=False):
    """One thing that happened, as read back; `data` looks into the block that was read: copy it to keep it."""

    seq: int
    time: int
    kind: str
    data: Raw


class Block(msgspec.Struct, gc=False):
    """The lines of one write, as read back: a part of a larger buffer, which is not copied."""

    first: int
    last: int
    time: int
    """In milliseconds since 1970."""
    buffer: bytes
    start: int
    end: int
    """Where its lines begin and end in the buffer; the seal is not one of them."""
    places: list[tuple[int, int]] = []
    """The offset and the length of each record, from `start`."""

    @property
    def lines(self) -> bytes:
        """A copy of all lines, with their newlines."""
        return self.buffer[self.start : self.end]

    def updates(self) -> list[memoryview]:
        """Return the runs of lines that are for the peer."""
        view = memoryview(self.buffer)
        if not self.places:
            return [view[self.start : self.end]]
        runs: list[memoryview] = []
        begin = self.start
        for offset, length in self.places:
            at = self.start + offset
            if at > begin:
                runs.append(view[begin:at])
            begin = at + length + 1
        if begin < self.end:
            runs.append(view[begin : self.end])
        return runs

    def records(self) -> list[Record]:
        """Return the records, each with the number of its line."""
        found: list[Record] = []
        view = memoryview(self.buffer)
        seq, counted = self.first, self.start
        for offset, length in self.places:
            at = self.start + offset
            seq += self.buffer.count(b"\n", counted, at)
            counted = at
            colon = self.buffer.index(b":", at)
            kind = self.buffer[at + 2 : colon - 1].decode()
            found.append(Record(seq, self.time, kind, Raw(view[colon + 1 : at + length - 1])))
        return found

    def runs(self) -> list[tuple[int, int, bytes]]:
        """Return copies of the runs of lines that are for the peer, each with its first number and its length."""
        found: list[tuple[int, int, bytes]] = []
        number, begin = self.first, self.start
        for offset, length in [*self.places, (self.end - self.start, 0)]:
            at = self.start + offset
            if at > begin:
                lines = self.buffer[begin:at]
                count = lines.count(b"\n")
                found.append((number, count, lines))
                number += count
            number += 1
            begin = at + length + 1
        return found

    def before(self, seq: int) -> "Block":
        """Return the part of it before a line, which is one of its lines but the first."""
        count = seq - self.first
        end = self.start
        for _ in range(count):
            end = self.buffer.index(b"\n", end) + 1
        places = [place for place in self.places if self.start + place[0] < end]
        return Block(self.first, seq - 1, self.time, self.buffer, self.start, end, places)

    def numbered_lines(self) -> Iterator[tuple[int, bytes]]:
        """Return every line with its number and without its newline."""
        return enumerate(self.lines[:-1].split(b"\n"), self.first)


class _FirstLine(msgspec.Struct):
    dragoman: int
    session: Header


class _Version(msgspec.Struct):
    dragoman: int


_decode_first_line = msgspec.json.Decoder(_FirstLine).decode
_decode_version = msgspec.json.Decoder(_Version).decode
_decode_places = msgspec.json.Decoder(list[tuple[int, int]]).decode
_decode_object = msgspec.json.Decoder(dict[str, object]).decode
_decode_members = msgspec.json.Decoder(dict[str, Raw]).decode
_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


def cut_before(blocks: list[Block], seq: int | None) -> tuple[list[Block], bool]:
    """Return the blocks, or their lines before one of a number, and whether more may follow."""
    if seq is None or not blocks or blocks[-1].last < seq:
        return blocks, True
    whole = [block for block in blocks if block.last < seq]
    rest = blocks[len(whole)]
    return ([*whole, rest.before(seq)] if rest.first < seq else whole), False


def now_ms() -> int:
    """Return the time as seals have it."""
    return time.time_ns() // 1_000_000


def write_numbers(first: int, count: int) -> list[bytes]:
    """Return numbers that follow each other in decimal digits; formatting one after the other takes far longer."""
    return msgspec.json.encode(list(range(first, first + count)))[1:-1].split(b",") if count else []


class Draft:
    """A block that is being put together, for one write or several: lines of the wire and records, in order."""

    def __init__(self, kinds: frozenset[str] = KINDS) -> None:
        self.size = 0
        """The bytes of its lines."""
        self._kinds = kinds
        self._parts: list[bytes] = []
        """Lines that were not taken yet."""
        self._places: list[tuple[int, int]] = []
        self._count = 0
        self._sum: int | None = None
        """The sum of the lines that were taken."""
        self.begun_ms: int | None = None
        """The time when the first lines were taken."""

    def __len__(self) -> int:
        """Return the number of lines."""
        return self._count

    @property
    def is_taken(self) -> bool:
        """Whether all its lines were taken."""
        return not self._parts

    def add_lines(self, lines: bytes, count: int | None = None) -> None:
        """Add whole lines of the wire; raises ValueError for anything else.

        Who made the lines knows their number, and gives it: to look at each of them, even in C, is a third of the cost
        of a log.
        """
        sound = lines.startswith(LINE_HEAD) and lines.endswith(b"\n")
        if sound and count is None:
            count = lines.count(b"\n")
            sound = lines.count(b"\n" + LINE_HEAD) == count - 1
        if not sound or not count:
            raise ValueError(f"each line of the wire must begin with {LINE_HEAD.decode()} and end with a newline")
        self._add(lines, count)

    def add_record(self, kind: str, data: bytes) -> None:
        """Add a record; raises ValueError for an unknown kind or several lines."""
        if kind not in self._kinds:
            raise ValueError(f"a record cannot be a {kind!r}, only one of {', '.join(sorted(self._kinds))}")
        if b"\n" in data:
            raise ValueError("the payload of a record must be JSON without a newline in it")
        line = b'{"%b":%b}\n' % (kind.encode(), data)
        self._places.append((self.size, len(line) - 1))
        self._add(line, 1)

    def take(self, time: int, before: int) -> bytes:
        """Return the lines that were added since the last call, to be written ahead of the seal, given the last sum."""
        if self.begun_ms is None:
            self.begun_ms = time
        lines = b"".join(self._parts)
        self._parts = []
        self._sum = crc32(lines, before if self._sum is None else self._sum)
        return lines

    def seal(self, first: int, time: int, before: int) -> tuple[bytes, int]:
        """Return the block, but for the lines that were taken, with its seal, and its sum.

        Given are the number of its first line, and the sum before.
        """
        checksum = before if self._sum is None else self._sum
        for part in self._parts:
            checksum = crc32(part, checksum)
        line, checksum = _seal_line(first, first + self._count - 1, time, self._places, checksum)
        return b"".join([*self._parts, line]), checksum

    def runs(self, first: int) -> list[tuple[int, int, bytes]]:
        """Return the runs of lines that are for the peer, given the number of its first line, if no line was taken yet.

        See `Block.runs`.
        """
        lines = b"".join(self._parts)
        if not self._places:
            return [(first, self._count, lines)] if lines else []
        return Block(first, first + self._count - 1, 0, lines, 0, len(lines), self._places).runs()

    def _add(self, lines: bytes, count: int) -> None:
        self._parts.append(lines)
        self.size += len(lines)
        self._count += count


def seal(
    lines: bytearray, first: int, last: int, time: int, *, before: int, places: list[tuple[int, int]]
) -> tuple[bytearray, int]:
    """Add a seal to lines, in place, and return them with its sum, which the next seal begins with."""
    line, checksum = _seal_line(first, last, time, places, crc32(lines, before))
    lines += line
    return lines, checksum


def _seal_line(first: int, last: int, time: int, places: list[tuple[int, int]], checksum: int) -> tuple[bytes, int]:
    """Return a seal and its sum, given the sum of the lines before it."""
    records = b',"records":' + msgspec.json.encode(places) if places else b""
    line = b'\t{"seal":{"first":%d,"last":%d,"time":%d%b' % (first, last, time, records)
    checksum = crc32(line, checksum)
    return line + b',"sum":"%08x"}}\n' % checksum, checksum


def encode_header(header: Header, time: int) -> tuple[bytes, int]:
    """Return the first block of a log, and its sum."""
    return encode_first({"session": header}, time)


def encode_first(about: dict[str, object], time: int) -> tuple[bytes, int]:
    """Return the first block of a file, which says what it is, and its sum."""
    line = msgspec.json.encode({"dragoman": VERSION, **about}) + b"\n"
    block, checksum = seal(bytearray(line), 0, 0, time, before=0, places=[])
    return bytes(block), checksum


def decode_header(block: bytes) -> tuple[Header, int]:
    """Read the first block of a log, and its sum; raises ValueError that says what is wrong with it."""
    found, damaged = find_blocks(block, 0, 0)
    if damaged or len(found.blocks) != 1 or found.end != len(block):
        raise ValueError(explain_header(block))
    line = block[: found.blocks[0].end]
    if read_version(line) != VERSION:
        raise ValueError(explain_header(line))
    return _decode_first_line(line).session, found.checksum


def read_version(line: bytes) -> int | None:
    """Return the version of the format that a first line names; None when it is no header at all."""
    try:
        return _decode_version(line.partition(b"\n")[0]).dragoman
    except _NOT_JSON:
        return None


def explain_header(line: bytes) -> str:
    """Say what is wrong with a first line."""
    version = read_version(line)
    if version is None:
        return "its first line is no header of a session log"
    if version not in (1, VERSION):
        return f"it has format {version}, and this dragoman reads format {VERSION}: use the dragoman that wrote it"
    return "its header is damaged"


class Found(msgspec.Struct):
    """The good blocks at the beginning of a buffer."""

    blocks: list[Block]
    end: int
    """Where the seal of the last one ends in the buffer."""
    checksum: int
    """The sum of the last one."""


def find_blocks(buffer: bytes, first: int, checksum: int) -> tuple[Found, bool]:
    """Find and check the blocks that a buffer begins with, and tell whether the one after them is damaged.

    `first` is the number of the first line and `checksum` the sum before it.
    """
    view = memoryview(buffer)
    blocks: list[Block] = []
    end = 0
    at = buffer.find(b"\t")
    while at >= 0:
        match = _SEAL.match(buffer, at - 1) if at else None
        if match is None:
            if buffer[max(at - 1, 0) : at + 1] == b"\n\t" and buffer.find(b"\n", at) >= 0:
                return Found(blocks, end, checksum), True  # a whole line that begins like a seal and is none
            at = buffer.find(b"\t", at + 1)
            continue
        stop = match.end()
        found_sum = crc32(view[end : stop - _SUM_BYTES], checksum)
        last = int(match[2])
        places = [] if match[4] is None else _read_places(match[4], at - end)
        if found_sum != int(match[5], 16) or int(match[1]) != first or last < first or places is None:
            return Found(blocks, end, checksum), True
        blocks.append(Block(first, last, int(match[3]), buffer, end, at, places))
        first, checksum, end = last + 1, found_sum, stop
        at = buffer.find(b"\t", stop)
    return Found(blocks, end, checksum), False


def read_seal(block: bytes) -> tuple[int, int]:
    """Return the number of the last line of a sealed block and its sum, unchecked; raises ValueError."""
    match = _SEAL.match(block, block.rfind(b"\t") - 1)
    if match is None:
        raise ValueError("this is no sealed block")
    return int(match[2]), int(match[5], 16)


def _read_places(text: bytes, size: int) -> list[tuple[int, int]] | None:
    """Read where the records of a block are; None for places that no writer of this format has made."""
    try:
        places = _decode_places(text)
    except msgspec.DecodeError:
        return None
    end = 0
    for offset, length in places:
        if offset < end or length < 1:
            return None
        end = offset + length + 1
    return places if end <= size else None


def read_torn(lines: bytes, first: int, time: int, kinds: frozenset[str] = KINDS) -> Block | None:
    """Read the whole lines of a torn write, which no sum vouches for; raises ValueError for what cannot be one."""
    if not lines:
        return None
    str(lines, "utf-8")
    if b"\n\t" in b"\n" + lines:
        raise ValueError("a seal is broken")
    places: list[tuple[int, int]] = []
    at = count = 0
    for line in lines[:-1].split(b"\n"):
        keys = _decode_object(line)
        if not line.startswith(LINE_HEAD):
            if len(keys) != 1 or not keys.keys() <= kinds:
                raise ValueError("a line is neither of the wire nor a record")
            if not line.startswith(b'{"%b":' % next(iter(keys)).encode()):
                raise ValueError("a record is not written as this program writes it")
            places.append((at, len(line)))
        at += len(line) + 1
        count += 1
    return Block(first, first + count - 1, time, lines, 0, len(lines), places)


def wire_line(message: bytes) -> bytes:
    """Return a message as a line of the wire, with `jsonrpc` first if it is not; raises DecodeError if it is none.

    A member that is given twice is left out, but for the last one, which is the one that every decoder takes.
    """
    if b"\r" in message or b"\n" in message:  # between two members: inside a string they are not allowed
        message = message.translate(_ONE_LINE)
    if message.startswith(LINE_HEAD):
        return message + b"\n"
    members = _decode_members(message)
    return msgspec.json.encode({"jsonrpc": members.pop("jsonrpc", Raw(b'"2.0"')), **members}) + b"\n"
