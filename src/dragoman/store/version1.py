"""Session logs and journals of version 1: read as blocks, and converted once.

`record` describes version 1. A log of that version is read where it is. When it was read to its end by a process that
holds it, it is converted: a new file beside it, synced, takes its name, and the original is kept as
`<name>.version1.jsonl` until the next start of a process.
"""

import os
import re
from contextlib import suppress
from itertools import groupby
from pathlib import Path

import msgspec

from dragoman.store.block import Block, Draft, Header, find_blocks, wire_line
from dragoman.store.block_log import LogHead, LogPosition, write_sound
from dragoman.store.disk import Disk
from dragoman.store.log_end import LogEnd, take_title, take_turn
from dragoman.store.naming import version1_path
from dragoman.store.record import Record, RecordReader
from dragoman.store.sealed_log import Damage, keep_aside

_UPDATE_LINE = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%b,"update":%b}}\n'
"""The line around each update, which version 1 left out, because its writers made no other."""

_FIRST_LOOK_BYTES = 4096
_LAST_LOOK_BYTES = 1 << 24
_GROWTH = 8
_HEAD = re.compile(rb'\{"seq":\d+,"time":(\d+),"([a-z]+)":')


class _TitleLine(msgspec.Struct):
    title: msgspec.Raw


class _TurnLine(msgspec.Struct):
    turn: msgspec.Raw


_decode_title = msgspec.json.Decoder(_TitleLine).decode
_decode_turn = msgspec.json.Decoder(_TurnLine).decode


class Version1Reader:
    """Reads a session log of version 1 as blocks. See `LogReader`."""

    def __init__(self, disk: Disk, path: Path, head: LogHead, end: int | None) -> None:
        self.unsealed: Block | None = None
        self._session_id = head.header.id
        self._start = head.start.offset
        self._reader = RecordReader(disk, path, self._start, end)
        self._last = 0
        self._checksum = head.start.checksum

    @property
    def position(self) -> LogPosition:
        return LogPosition(self._reader.trusted, self._last, self._checksum)

    @property
    def damage(self) -> Damage | None:
        return self._reader.damage

    def read(self) -> list[Block]:
        records = self._reader.read()
        if not records:
            return []
        first = self._last + 1
        buffer, checksum = _draft(records, self._session_id).seal(first, records[-1].time, self._checksum)
        found, _ = find_blocks(bytes(buffer), first, self._checksum)
        self._last, self._checksum = records[-1].seq, checksum
        return found.blocks

    def read_end(self) -> LogEnd:
        return read_log_end(self._reader.fd, self._start, self._reader.trusted)

    def read_rest(self) -> bytes:
        damage = self._reader.damage
        return b"" if damage is None else os.pread(self._reader.fd, damage.lost_bytes, damage.at_byte)

    def close(self) -> None:
        self._reader.close()


def convert(
    disk: Disk, path: Path, head: LogHead, damage: Damage | None, *, header: Header | None = None
) -> tuple[LogHead, LogPosition, Path | None]:
    """Put a log of the present version in the place of one of version 1, maybe under another header.

    Returns its head and its end, and the path of the original if that is damaged inside. A crash at any moment leaves
    one of the two under the name of the log. Raises OSError.
    """
    fresh = path.with_suffix(".jsonl.new")
    original = version1_path(path)
    for leftover in (fresh, original):
        with suppress(FileNotFoundError):
            leftover.unlink()
    reader = Version1Reader(disk, path, head, None)
    try:
        start, end = write_sound(disk, reader, head.header if header is None else header, fresh)
        aside = keep_aside(path) if damage is not None and not damage.torn else None
        os.link(path, original, follow_symlinks=False)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
    finally:
        reader.close()
    disk.sync_directory(path.parent)
    return LogHead(head.header if header is None else header, 2, start), end, aside


def _draft(records: list[Record], session_id: str) -> Draft:
    draft = Draft()
    encoded = msgspec.json.encode(session_id)
    for kind, group in groupby(records, lambda record: record.kind):
        if kind == "update":
            draft.add_lines(b"".join([_UPDATE_LINE % (encoded, bytes(record.data)) for record in group]))
        elif kind == "message":
            draft.add_lines(b"".join([wire_line(bytes(record.data)) for record in group]))
        else:
            for record in group:
                draft.add_record(kind, bytes(record.data))
    return draft


def read_log_end(fd: int, start: int, end: int) -> LogEnd:
    """Look at the last records between two places of a log, further and further back until a turn's end is found."""
    size = _FIRST_LOOK_BYTES
    while True:
        begin = max(start, end - size)
        tail, found = _look(os.pread(fd, end - begin, begin))
        if found or begin == start:
            return tail
        if size >= _LAST_LOOK_BYTES:
            tail.prompted = True  # so much is said in turns alone
            return tail
        size *= _GROWTH


def _look(block: bytes) -> tuple[LogEnd, bool]:
    tail = LogEnd()
    titled = False
    for line in reversed(block.split(b"\n")[:-1]):
        head = _HEAD.match(line)
        if head is None:
            continue
        tail.time = tail.time or int(head[1])
        try:
            if head[2] == b"title" and not titled:
                titled = take_title(tail, _decode_title(line).title)
            elif head[2] == b"turn":
                tail.prompted = True
                if take_turn(tail, _decode_turn(line).turn, titled=titled):
                    return tail, True
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return tail, False
