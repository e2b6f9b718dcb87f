"""The part of a journal that is not in memory, read from its file; all of this is for threads."""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from dragoman.bridge.envelope import mark, rename_session
from dragoman.bridge.hub.epoch import renew_header
from dragoman.bridge.hub.event import Event
from dragoman.bridge.hub.journal import INDEX_BYTES, Journal, Place
from dragoman.bridge.hub.replay import PromptCount
from dragoman.bridge.hub.tail import TailBudget
from dragoman.store.disk import READ, Disk
from dragoman.store.log_summary import read_log_end
from dragoman.store.record import Header, encode_header
from dragoman.store.sealed_log import Reader, copy_file, mend_torn, read_header, set_aside

_MAX_UNPROMPTED_BYTES = 1 << 20
"""Of the settings and commands of a session, and nothing else, a journal has some kilobytes."""


class Block(msgspec.Struct):
    """Messages that follow each other: their places, themselves, and the place up to which nothing is left out."""

    seqs: list[int]
    events: list[Event]
    reached: int


class Known(msgspec.Struct, frozen=True):
    """A journal as it lies on the disk."""

    path: Path
    header: Header
    title: str | None
    updated_ms: int
    prompted: bool


def read_block(disk: Disk, journal: Journal, after: int, until: int, *, marked: bool) -> Block:
    """Read the next messages after a place, some hundred kilobytes of them; raises OSError."""
    place = journal.place_before(after)
    epoch = journal.epoch.encode()
    reader = Reader(disk, journal.path, place.offset, journal.size)
    reader.seq = place.seq
    block = Block([], [], after)
    try:
        while block.reached < until and not block.events:
            records = reader.read()
            if not records:
                block.reached = until  # what cannot be read is left out: the rest is worth more than the gap
                break
            for record in records:
                if record.kind == "message" and after < record.seq <= until:
                    line = bytes(record.data)
                    if marked:
                        line = mark(line, b"%b.%d" % (epoch, record.seq), record.time)
                    block.seqs.append(record.seq)
                    block.events.append(Event(line))
            block.reached = min(records[-1].seq, until)
    finally:
        reader.close()
    return block


def copy_lines(disk: Disk, journal: Journal, session_id: str) -> list[bytes]:
    """Read all messages, and have them name another session; raises OSError."""
    lines: list[bytes] = []
    block = Block([], [], 0)
    end = journal.durable_end
    while block.reached < end:
        block = read_block(disk, journal, block.reached, end, marked=False)
        lines += [rename_session(event.data, session_id) for event in block.events]
    return lines


def look_at(disk: Disk, path: Path) -> Known | None:
    """Read whose journal this is and what its end says; None if it is none. Raises SessionUnreadable and OSError."""
    fd = disk.open(path, READ)
    try:
        found = read_header(fd, path)
        if found is None:
            return None
        header, start = found
        status = os.fstat(fd)
        tail = read_log_end(fd, start, status.st_size)
        prompted = tail.prompted or _has_conversation(fd, status.st_size)
        return Known(path, header, tail.title, tail.time or int(status.st_mtime * 1000), prompted)
    finally:
        os.close(fd)


def _has_conversation(fd: int, size: int) -> bool:
    """Tell whether a journal without a turn has what an agent replayed of turns before."""
    return size > _MAX_UNPROMPTED_BYTES or b'_message_chunk"' in os.pread(fd, size, 0)


def reopen(disk: Disk, known: Known, budget: TailBudget) -> Journal:
    """Open a journal of an earlier run to add to it, and mend what a crash left of it; raises OSError."""
    fd = disk.open(known.path, READ)
    try:
        found = read_header(fd, known.path)
    finally:
        os.close(fd)
    start = found[1] if found else 0
    places = [Place(0, start)]
    config: bytes | None = None
    prompts = PromptCount()
    reader = Reader(disk, known.path, start, None)
    try:
        while True:
            seq, offset = reader.seq, reader.trusted
            records = reader.read()
            if not records:
                break
            for record in records:
                if record.kind == "message":
                    prompts.see(bytes(record.data))
                elif record.kind == "config":
                    config = bytes(record.data)
            if offset - places[-1].offset >= INDEX_BYTES:
                places.append(Place(seq, offset))
    finally:
        reader.close()
    journal = Journal(disk, known.path, known.header, budget, places=places, end=reader.seq, size=reader.trusted)
    if reader.damage is not None:
        try:
            header, size = _mend(disk, known, start, reader)
        except OSError as error:
            journal.fail(error, "mend")
        else:
            grown = len(encode_header(header)) - start
            places = [Place(place.seq, place.offset + grown) for place in places]
            journal = Journal(disk, known.path, header, budget, places=places, end=reader.seq, size=size)
    journal.updated_ms = known.updated_ms
    journal.config = config
    journal.prompts = prompts.value
    return journal


def _mend(disk: Disk, known: Known, start: int, reader: Reader) -> tuple[Header, int]:
    """Keep what can be trusted under a new header, because cursors may point at what is lost; raises OSError."""
    header = renew_header(known.header)
    line = encode_header(header)
    fresh = known.path.with_suffix(".new")
    with suppress(FileNotFoundError):
        fresh.unlink()
    copy_file(disk, known.path, fresh, start, reader.trusted, before=line)
    size = len(line) + reader.trusted - start
    if reader.damage is not None and reader.damage.torn:
        size = mend_torn(disk, fresh, size, reader.unsealed)
    else:
        set_aside(disk, known.path, reader.trusted)
    fresh.replace(known.path)
    disk.sync_directory(known.path.parent)
    return header, size
