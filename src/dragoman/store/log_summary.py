"""The summary of a session that its log gives: the header at its beginning, and the records at its end.

The end has the title, the number of messages and the time of the last write. A session was prompted when its log has
a `turn` record; until then it has settings and their updates alone.
"""

import os
import re
from pathlib import Path

import msgspec

from dragoman.errors import SessionUnreadable
from dragoman.store.disk import READ, Disk
from dragoman.store.naming import has_aside, log_name, projects_path
from dragoman.store.record import Header
from dragoman.store.sealed_log import read_header

_FIRST_LOOK_BYTES = 4096
"""A log that was not cut off in a turn ends in the record that says it all."""

_LAST_LOOK_BYTES = 1 << 24
"""A turn of more than 16 MiB that never ended hides the title of its session from lists, until the next one ends."""

_GROWTH = 8
_HEAD = re.compile(rb'\{"seq":\d+,"time":(\d+),"([a-z]+)":')


class LogSummary(msgspec.Struct, frozen=True):
    """The facts about a session that an index keeps."""

    project: str
    header: Header
    title: str | None
    updated_ms: int
    message_count: int
    unprompted_bytes: int | None = None
    """The size of a log in which no turn was begun yet; None once one was."""


class LogEnd(msgspec.Struct):
    """The facts about a session that the end of its log gives."""

    title: str | None = None
    message_count: int = 0
    time: int | None = None
    """In milliseconds since 1970; None without any record."""
    prompted: bool = False
    """Whether a turn was ever begun."""


class _Title(msgspec.Struct):
    title: str | None = None


class _Turn(msgspec.Struct):
    event: str = ""
    title: str | None = None
    messages: int = 0


class _TitleLine(msgspec.Struct):
    title: _Title | str | None = None


class _TurnLine(msgspec.Struct):
    turn: _Turn


_decode_title = msgspec.json.Decoder(_TitleLine).decode
_decode_turn = msgspec.json.Decoder(_TurnLine).decode


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
        if head[2] == b"title" and not titled:
            titled = _take_title(tail, line)
        elif head[2] == b"turn":
            tail.prompted = True
            if _take_turn(tail, line, titled=titled):
                return tail, True
    return tail, False


def _take_title(tail: LogEnd, line: bytes) -> bool:
    try:
        given = _decode_title(line).title
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    tail.title = given.title if isinstance(given, _Title) else given
    return True


def _take_turn(tail: LogEnd, line: bytes, *, titled: bool) -> bool:
    try:
        turn = _decode_turn(line).turn
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if turn.event != "end":
        return False
    tail.message_count = turn.messages
    if not titled:
        tail.title = turn.title
    return True


def read_summary(disk: Disk, home: Path, project: str, session_id: str) -> LogSummary | None:
    """Read the summary of a session from the beginning and the end of its log; None when it cannot be used."""
    path = projects_path(home) / project / log_name(session_id)
    try:
        fd = disk.open(path, READ)
    except OSError:
        return None
    try:
        return _read_summary(fd, path, session_id)
    except (OSError, SessionUnreadable):
        return None  # a caller that asks for it by its id is told
    finally:
        os.close(fd)


def _read_summary(fd: int, path: Path, session_id: str) -> LogSummary | None:
    found = read_header(fd, path)
    if found is None or found[0].id != session_id:
        return None
    header, start = found
    status = os.fstat(fd)
    tail = read_log_end(fd, start, status.st_size)
    updated_ms = tail.time if tail.time is not None else status.st_mtime_ns // 1_000_000
    unprompted_bytes = None if tail.prompted or has_aside(path) else status.st_size
    return LogSummary(path.parent.name, header, tail.title, updated_ms, tail.message_count, unprompted_bytes)
