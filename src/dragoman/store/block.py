"""The format of session logs, journals and trajectories: blocks of lines, each block closed by a seal.

    {"dragoman":1,"session":{"id":"S","cwd":…,"additionalDirectories":[…],"created":…}}
    →{"seal":{"first":0,"last":0,"time":1763240000000,"sum":"89abcdef"}}
    {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{…}}}
    {"turn":{"event":"end",…}}
    →{"seal":{"first":1,"last":2,"time":1763240000123,"records":[[84,27]],"sum":"01234567"}}

Each line is one JSON object. → stands for a tab. A *block* is the lines of one write to the file, or of several small
writes. The line after it is its *seal*. The first block is only the header: the version of the format and the session
of the log. The header decides which session that is, not the path of the file. A trajectory has `"trajectory"` there,
and different kinds of records (`recording.trajectory`). The first bytes of a line show what it is:

* `{"jsonrpc":` starts a line of the wire, with exactly the bytes that were sent to the peer. To replay a log is to copy
  these lines. If an agent's message starts with another member, `jsonrpc` is moved to the front. The rest is unchanged.
* A tab and `{"seal":` start a seal. JSON allows a tab before a value, so any tool can read the line. It never allows a
  tab inside a string. Searching for this one byte takes a fifth of the time of searching for a word. Apart from the
  checksum, it is the only time a reader looks at the bytes inside a block.
* Every other line is a *record* for dragoman: an object with one key, its kind. It is never sent to a peer.

A seal has these members:

* `first` and `last`, the numbers of the first and last line of the block. Lines are counted from 1 without a gap, and
  seals are not counted. The header is line 0.
* `time`, the time of the last write in milliseconds since 1970.
* `records`, the offset in the block and the length without newline of each record. It is left out if there is none.
* `sum`, the checksum.

So a reader that has checked the sum knows which ranges of bytes to send to the peer, and need not look at any line.

The sum is the CRC-32 of the bytes of the block and of its seal up to `,"sum":`. It starts from the sum of the previous
seal, or from 0 for the header. The sums are therefore a chain: a block that is missing, repeated, moved or from another
file does not match. Every byte is covered, because a sum is always followed by `"}}` and a newline.

A JSON line contains no newline, so a newline, a tab and `{"seal":` only occur at the end of a block. The other line
separators of Unicode are ordinary characters here.

This is what can be known about an incomplete file:

* Bytes up to a good seal are what was written.
* After the last seal there can be the start of another block, if its writer died: whole lines, then part of a line. The
  whole lines may have been shown, so they are kept and sealed. Part of a line is a *torn* write and is dropped.
* Anything else is *damage*: a sum that does not match, a gap in the numbers, or a whole line after the last seal that
  cannot be a line of a log. Nothing after the last good seal is trusted.
"""

import re
import time
from collections.abc import Callable, Iterator
from zlib import crc32

import msgspec
from msgspec import Raw

VERSION = 1

Rename = Callable[[bytes], bytes]
"""Replaces the session id in whole lines."""

KINDS = frozenset({"client", "config", "model", "permission", "title", "turn"})
"""The kinds of records. Inside a sealed block, a reader ignores a kind that it does not know. In a torn write it treats
that kind as damage. So a record of a new kind must be sealed by the write that adds it."""

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
    """The session that a log belongs to."""

    id: str
    cwd: str
    additional_directories: list[str]
    created: str
    """ISO 8601 in UTC, with a Z."""
    forked_from: str | None = None
    origin: str | None = None
    """The program that created the session, if it gave its name: `run` for `dragoman run`."""


class Record(msgspec.Struct, gc=False):
    """One record that was read. `data` points into the buffer that was read: copy it to keep it."""

    seq: int
    time: int
    kind: str
    data: Raw


class Block(msgspec.Struct, gc=False):
    """The lines of one block that was read. They are part of a larger buffer and not copied."""

    first: int
    last: int
    time: int
    """In milliseconds since 1970."""
    buffer: bytes
    start: int
    end: int
    """The offsets in the buffer where its lines start and end. The seal is not included."""
    places: list[tuple[int, int]] = []
    """The offset and the length of each record, from `start`."""

    @property
    def lines(self) -> bytes:
        """A copy of all lines, with their newlines."""
        return self.buffer[self.start : self.end]

    def updates(self) -> list[memoryview]:
        """Return the runs of lines to send to the peer."""
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
        """Return copies of the runs of lines to send to the peer, each with its first number and its line count."""
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
        """Return the part of the block before line `seq`, which must be in the block and not its first line."""
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
    """Return the blocks, or only their lines before line `seq`, and whether blocks after them may be wanted."""
    if seq is None or not blocks or blocks[-1].last < seq:
        return blocks, True
    whole = [block for block in blocks if block.last < seq]
    rest = blocks[len(whole)]
    return ([*whole, rest.before(seq)] if rest.first < seq else whole), False


def now_ms() -> int:
    """Return the current time in the unit of seals."""
    return time.time_ns() // 1_000_000


def write_numbers(first: int, count: int) -> list[bytes]:
    """Return consecutive numbers in decimal digits. Formatting each number separately takes far longer."""
    return msgspec.json.encode(list(range(first, first + count)))[1:-1].split(b",") if count else []


class Draft:
    """A block under construction: lines of the wire and records, in order."""

    def __init__(self, kinds: frozenset[str] = KINDS) -> None:
        self.size = 0
        """The size of its lines in bytes."""
        self.places: list[tuple[int, int]] = []
        """The offset and the length of each record."""
        self.is_ordinary = True
        """Whether its lines of the wire are only updates that all viewers of a bridge support."""
        self._kinds = kinds
        self._parts: list[bytes] = []
        self._count = 0

    def __len__(self) -> int:
        """Return the number of lines."""
        return self._count

    @property
    def lines(self) -> bytes:
        """All lines with their newlines. They are joined once."""
        if len(self._parts) > 1:
            self._parts = [b"".join(self._parts)]
        return self._parts[0] if self._parts else b""

    def add_lines(self, lines: bytes, count: int | None = None, *, is_ordinary: bool = False) -> None:
        """Add whole lines of the wire. Raises ValueError for anything else.

        A caller that made the lines knows their number and passes `count`. Looking at each line, even in C, would be a
        third of the cost of a log.
        """
        sound = lines.startswith(LINE_HEAD) and lines.endswith(b"\n")
        if sound and count is None:
            count = lines.count(b"\n")
            sound = lines.count(b"\n" + LINE_HEAD) == count - 1
        if not sound or not count:
            raise ValueError(f"each line of the wire must start with {LINE_HEAD.decode()} and end with a newline")
        self.is_ordinary = self.is_ordinary and is_ordinary
        self._add(lines, count)

    def add_record(self, kind: str, data: bytes) -> None:
        """Add a record. Raises ValueError for an unknown kind or for several lines."""
        if kind not in self._kinds:
            raise ValueError(f"a record cannot be a {kind!r}, only one of {', '.join(sorted(self._kinds))}")
        if b"\n" in data:
            raise ValueError("the payload of a record must be JSON without a newline")
        line = b'{"%b":%b}\n' % (kind.encode(), data)
        self.places.append((self.size, len(line) - 1))
        self._add(line, 1)

    def add_draft(self, other: "Draft") -> None:
        """Add the lines of another block."""
        self.places += [(self.size + offset, length) for offset, length in other.places]
        self.is_ordinary = self.is_ordinary and other.is_ordinary
        self._add(other.lines, len(other))

    def seal(self, first: int, time: int, before: int) -> tuple[bytes, int]:
        """Return the block with its seal, and its sum.

        `first` is the number of its first line, and `before` the sum of the previous seal.
        """
        lines = self.lines
        line, checksum = seal_line(first, first + self._count - 1, time, self.places, crc32(lines, before))
        return lines + line, checksum

    def runs(self, first: int) -> list[tuple[int, int, bytes]]:
        """Return the runs of lines to send to the peer, as `Block.runs` does.

        `first` is the number of the first line.
        """
        lines = self.lines
        if not self.places:
            return [(first, self._count, lines)] if lines else []
        return Block(first, first + self._count - 1, 0, lines, 0, len(lines), self.places).runs()

    def _add(self, lines: bytes, count: int) -> None:
        self._parts.append(lines)
        self.size += len(lines)
        self._count += count


def seal(
    lines: bytearray, first: int, last: int, time: int, *, before: int, places: list[tuple[int, int]]
) -> tuple[bytearray, int]:
    """Append a seal to the lines, in place. Return them and the sum of the seal, from which the next seal starts."""
    line, checksum = seal_line(first, last, time, places, crc32(lines, before))
    lines += line
    return lines, checksum


def seal_line(first: int, last: int, time: int, places: list[tuple[int, int]], checksum: int) -> tuple[bytes, int]:
    """Return a seal and its sum. `checksum` is the sum of the lines before it."""
    records = b',"records":' + msgspec.json.encode(places) if places else b""
    line = b'\t{"seal":{"first":%d,"last":%d,"time":%d%b' % (first, last, time, records)
    checksum = crc32(line, checksum)
    return line + b',"sum":"%08x"}}\n' % checksum, checksum


def encode_header(header: Header, time: int) -> tuple[bytes, int]:
    """Return the first block of a log and its sum."""
    return encode_first({"session": header}, time)


def encode_first(about: dict[str, object], time: int) -> tuple[bytes, int]:
    """Return the first block of a file, which describes the file, and its sum."""
    line = msgspec.json.encode({"dragoman": VERSION, **about}) + b"\n"
    block, checksum = seal(bytearray(line), 0, 0, time, before=0, places=[])
    return bytes(block), checksum


def decode_header(block: bytes) -> tuple[Header, int]:
    """Return the header in the first block of a log, and the sum of the block. Raises ValueError with the problem."""
    found, damaged = find_blocks(block, 0, 0)
    if damaged or len(found.blocks) != 1 or found.end != len(block):
        raise ValueError(explain_header(block))
    line = block[: found.blocks[0].end]
    if read_version(line) != VERSION:
        raise ValueError(explain_header(line))
    return _decode_first_line(line).session, found.checksum


def read_version(line: bytes) -> int | None:
    """Return the version of the format from a first line, or None if the line is not a header."""
    try:
        return _decode_version(line.partition(b"\n")[0]).dragoman
    except _NOT_JSON:
        return None


def explain_header(line: bytes) -> str:
    """Return a description of the problem with a first line."""
    version = read_version(line)
    if version is None:
        return "its first line is not a session log header"
    if version != VERSION:
        return f"it has format {version}, and this dragoman reads format {VERSION}: use the dragoman that wrote it"
    return "its header is damaged"


class Found(msgspec.Struct):
    """The good blocks at the start of a buffer."""

    blocks: list[Block]
    end: int
    """The offset in the buffer after the seal of the last one."""
    checksum: int
    """The sum of the last one."""


def find_blocks(buffer: bytes, first: int, checksum: int) -> tuple[Found, bool]:
    """Find and check the blocks at the start of a buffer. Return them, and whether the block after them is damaged.

    `first` is the number of the first line, and `checksum` the sum of the previous seal.
    """
    view = memoryview(buffer)
    blocks: list[Block] = []
    end = 0
    at = buffer.find(b"\t")
    while at >= 0:
        match = _SEAL.match(buffer, at - 1) if at else None
        if match is None:
            if buffer[max(at - 1, 0) : at + 1] == b"\n\t" and buffer.find(b"\n", at) >= 0:
                return Found(blocks, end, checksum), True  # a whole line that starts like a seal but is not one
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
    """Return the number of the last line of a sealed block, and its sum without checking it. Raises ValueError."""
    match = _SEAL.match(block, block.rfind(b"\t") - 1)
    if match is None:
        raise ValueError("this is not a sealed block")
    return int(match[2]), int(match[5], 16)


def _read_places(text: bytes, size: int) -> list[tuple[int, int]] | None:
    """Return the places of the records of a block, or None if no writer of this format can have written them."""
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
    """Return the whole lines of a torn write as a block, or None if there are none.

    No checksum covers these lines, so each must be a message or a record in the form that dragoman writes. Raises
    ValueError for other lines.
    """
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
                raise ValueError("a line is neither a message nor a record")
            if not line.startswith(b'{"%b":' % next(iter(keys)).encode()):
                raise ValueError("a record is not in the form that dragoman writes")
            places.append((at, len(line)))
        at += len(line) + 1
        count += 1
    return Block(first, first + count - 1, time, lines, 0, len(lines), places)


def wire_line(message: bytes) -> bytes:
    """Return a message as a line of the wire, with `jsonrpc` as its first member. Raises DecodeError.

    If `jsonrpc` has to be moved, only the last occurrence of a repeated member is kept, which is the one that decoders
    use.
    """
    if b"\r" in message or b"\n" in message:  # only between members, because a string cannot contain them
        message = message.translate(_ONE_LINE)
    if message.startswith(LINE_HEAD):
        return message + b"\n"
    members = _decode_members(message)
    return msgspec.json.encode({"jsonrpc": members.pop("jsonrpc", Raw(b'"2.0"')), **members}) + b"\n"
