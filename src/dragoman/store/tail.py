"""What the end of a log says of its session: its title, how many messages it has, when it was last written.

A session was prompted when its log has a `turn` record; until then it has settings and their updates alone.
"""

import os
import re

import msgspec

_FIRST_LOOK_BYTES = 4096
"""A log that was not cut off in a turn ends in the record that says it all."""

_LAST_LOOK_BYTES = 1 << 24
"""A turn of more than 16 MiB that never ended hides the title of its session from lists, until the next one ends."""

_GROWTH = 8
_HEAD = re.compile(rb'\{"seq":\d+,"time":(\d+),"([a-z]+)":')


class Tail(msgspec.Struct):
    """What is known from the end of a log."""

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


def read_tail(fd: int, start: int, end: int) -> Tail:
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


def _look(block: bytes) -> tuple[Tail, bool]:
    tail = Tail()
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


def _take_title(tail: Tail, line: bytes) -> bool:
    try:
        given = _decode_title(line).title
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    tail.title = given.title if isinstance(given, _Title) else given
    return True


def _take_turn(tail: Tail, line: bytes, *, titled: bool) -> bool:
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
