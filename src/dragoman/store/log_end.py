"""The facts about a session that the end of its log gives: title, messages, archiving, time of the last write.

A session was prompted when its log has a `turn` record; until then it has settings and their updates alone. One that
the client has given a title, or has archived, counts as prompted, too: somebody wants to keep it.
"""

import os
import re

import msgspec

from dragoman.store.block import SEAL_MARK

_FIRST_LOOK_BYTES = 4096
"""A log that was not cut off in a turn ends in the record that says it all."""

_LAST_LOOK_BYTES = 1 << 24
"""A turn of more than 16 MiB that never ended hides the title of its session from lists, until the next one ends."""

_GROWTH = 8
_TIME = re.compile(rb'\n\t\{"seal":\{"first":\d+,"last":\d+,"time":(\d+)')
_TITLE_MARK = b'\n{"title":'
_TURN_MARK = b'\n{"turn":'
_CLIENT_MARK = b'\n{"client":'


class LogEnd(msgspec.Struct):
    """The facts about a session that the end of its log gives."""

    title: str | None = None
    message_count: int = 0
    is_archived: bool = False
    time: int | None = None
    """In milliseconds since 1970; None without any seal, or with lines behind the last one."""
    conversation_time: int | None = None
    """When a turn last began or ended, or the title changed: later writes are of settings. None if it is not known."""
    prompted: bool = False
    """Whether a turn was ever begun."""


class _Title(msgspec.Struct):
    title: str | None = None


class _Turn(msgspec.Struct):
    event: str = ""
    title: str | None = None
    messages: int = 0
    archived: bool = False


class _Client(msgspec.Struct):
    titled: bool = False
    archived: bool = False


_decode_client = msgspec.json.Decoder(_Client).decode
_decode_title = msgspec.json.Decoder(_Title | str | None).decode
_decode_turn = msgspec.json.Decoder(_Turn).decode


def read_log_end(fd: int, start: int, end: int) -> LogEnd:
    """Look at the last lines between two places of a log, further and further back until a turn's end is found."""
    size = _FIRST_LOOK_BYTES
    while True:
        begin = max(start - 1, end - size)  # with the newline before it, by which lines are found
        tail, found = _look(os.pread(fd, end - begin, begin))
        if found or begin < start:
            return tail
        if size >= _LAST_LOOK_BYTES:
            tail.prompted = True  # so much is said in turns alone
            return tail
        size *= _GROWTH


def _look(block: bytes) -> tuple[LogEnd, bool]:
    """Find records by their beginnings: no line has a newline inside, so that no other line can have them."""
    tail = LogEnd()
    client_at = block.rfind(_CLIENT_MARK)
    client = _payload(block, client_at + len(_CLIENT_MARK)) if client_at >= 0 else b""
    if client and is_kept(client):
        tail.prompted = True
    seal_at = block.rfind(SEAL_MARK)
    # Lines behind the last seal are younger than it: how much, only the file's own time tells.
    if block.find(b"\n", seal_at + 1) == len(block) - 1 and (seal := _TIME.match(block, seal_at)):
        tail.time = int(seal[1])
    titled = False
    title_at = block.rfind(_TITLE_MARK)
    turn_at = block.rfind(_TURN_MARK)
    if (last_at := max(title_at, turn_at)) >= 0 and (seal := _TIME.search(block, last_at)):
        tail.conversation_time = int(seal[1])
    if title_at > turn_at:
        titled = take_title(tail, _payload(block, title_at + len(_TITLE_MARK)))
    while turn_at >= 0:
        tail.prompted = True
        if take_turn(tail, _payload(block, turn_at + len(_TURN_MARK)), titled=titled):
            if client_at > turn_at:
                tail.is_archived = is_archived(client)
            return tail, True
        before = block.rfind(_TURN_MARK, 0, turn_at)
        if not titled and before < (title_at := block.rfind(_TITLE_MARK, 0, turn_at)):
            titled = take_title(tail, _payload(block, title_at + len(_TITLE_MARK)))
        turn_at = before
    tail.is_archived = is_archived(client)
    return tail, False


def _payload(block: bytes, begin: int) -> bytes:
    end = block.find(b"\n", begin)
    return block[begin : end - 1] if end > 0 else b""


def take_title(tail: LogEnd, payload: bytes | msgspec.Raw) -> bool:
    """Take the title that a record gives, and tell whether it does."""
    try:
        given = _decode_title(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    tail.title = given.title if isinstance(given, _Title) else given
    return True


def take_turn(tail: LogEnd, payload: bytes | msgspec.Raw, *, titled: bool) -> bool:
    """Take the facts that the end of a turn gives, and tell whether a record is one."""
    try:
        turn = _decode_turn(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if turn.event != "end":
        return False
    tail.message_count, tail.is_archived = turn.messages, turn.archived
    if not titled:
        tail.title = turn.title
    return True


def is_kept(client: bytes) -> bool:
    """Whether a `client` record says that somebody wants to keep the session: it has a title, or was archived."""
    choices = _decode_choices(client)
    return choices.titled or choices.archived


def is_archived(client: bytes) -> bool:
    """Whether a `client` record says that the session is archived."""
    return _decode_choices(client).archived


def _decode_choices(client: bytes) -> _Client:
    try:
        return _decode_client(client)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Client()
