"""The facts about a session at the end of its log: title, number of messages, archiving, time of the last write.

A session was prompted if its log has a `turn` record. Until then the log has only settings and their updates. A session
that the client has archived or given a title counts as prompted, because the user wants to keep it.
"""

import os
import re

import msgspec

from dragoman.store.block import SEAL_MARK

_FIRST_LOOK_BYTES = 4096
"""Enough for most logs: unless a turn was cut off, the log ends with a record that has all facts."""

_LAST_LOOK_BYTES = 1 << 24
"""The limit of the search. A turn of more than 16 MiB without an end hides the title until the next turn ends."""

_GROWTH = 8
_TIME = re.compile(rb'\n\t\{"seal":\{"first":\d+,"last":\d+,"time":(\d+)')
_TITLE_MARK = b'\n{"title":'
_TURN_MARK = b'\n{"turn":'
_CLIENT_MARK = b'\n{"client":'


class LogEnd(msgspec.Struct):
    """The facts about a session at the end of its log."""

    title: str | None = None
    message_count: int = 0
    is_archived: bool = False
    time: int | None = None
    """The time of the last write in milliseconds since 1970. None if there are lines without a seal, or no seal."""
    conversation_time: int | None = None
    """The time when a turn last started or ended, or the title changed. Later writes are settings. None if unknown."""
    prompted: bool = False
    """Whether a turn was ever started."""


class _Turn(msgspec.Struct):
    event: str = ""
    title: str | None = None
    messages: int = 0
    archived: bool = False


class _Client(msgspec.Struct):
    titled: bool = False
    archived: bool = False


_decode_client = msgspec.json.Decoder(_Client).decode
_decode_title = msgspec.json.Decoder(str | None).decode
_decode_turn = msgspec.json.Decoder(_Turn).decode


def read_log_end(fd: int, start: int, end: int) -> LogEnd:
    """Return the facts in the lines between two offsets of a log.

    Start with the last bytes, and read more of the log until the end of a turn is found.
    """
    size = _FIRST_LOOK_BYTES
    while True:
        begin = max(start - 1, end - size)  # includes the newline before the first line, because lines are found by it
        tail, found = _look(os.pread(fd, end - begin, begin))
        if found or begin < start:
            return tail
        if size >= _LAST_LOOK_BYTES:
            tail.prompted = True  # only turns write this much
            return tail
        size *= _GROWTH


def _look(block: bytes) -> tuple[LogEnd, bool]:
    """Return the facts in the last lines of a log, and whether they include the end of a turn.

    Records are found by their first bytes after a newline. No line contains a newline, so only records match.
    """
    tail = LogEnd()
    client_at = block.rfind(_CLIENT_MARK)
    client = _payload(block, client_at + len(_CLIENT_MARK)) if client_at >= 0 else b""
    if client and is_kept(client):
        tail.prompted = True
    seal_at = block.rfind(SEAL_MARK)
    # Lines after the last seal have no time. The caller then uses the time of the file.
    if block.find(b"\n", seal_at + 1) == len(block) - 1 and (seal := _TIME.match(block, seal_at)):
        tail.time = int(seal[1])
    titled = False
    title_at = block.rfind(_TITLE_MARK)
    turn_at = block.rfind(_TURN_MARK)
    if (last_at := max(title_at, turn_at)) >= 0 and (seal := _TIME.search(block, last_at)):
        tail.conversation_time = int(seal[1])
    if title_at > turn_at:
        titled = apply_title(tail, _payload(block, title_at + len(_TITLE_MARK)))
    # Go back from turn record to turn record until the end of a turn. The newest title before that wins.
    while turn_at >= 0:
        tail.prompted = True
        if apply_turn_end(tail, _payload(block, turn_at + len(_TURN_MARK)), titled=titled):
            if client_at > turn_at:
                tail.is_archived = is_archived(client)
            return tail, True
        before = block.rfind(_TURN_MARK, 0, turn_at)
        if not titled and before < (title_at := block.rfind(_TITLE_MARK, 0, turn_at)):
            titled = apply_title(tail, _payload(block, title_at + len(_TITLE_MARK)))
        turn_at = before
    tail.is_archived = is_archived(client)
    return tail, False


def _payload(block: bytes, begin: int) -> bytes:
    end = block.find(b"\n", begin)
    return block[begin : end - 1] if end > 0 else b""


def apply_title(tail: LogEnd, payload: bytes | msgspec.Raw) -> bool:
    """Set the title from a `title` record. Return whether the record is valid."""
    try:
        tail.title = _decode_title(payload)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def apply_turn_end(tail: LogEnd, payload: bytes | msgspec.Raw, *, titled: bool) -> bool:
    """Set the facts from a `turn` record if it is the end of a turn. Return whether it is.

    The title is only set if it is not `titled` already.
    """
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
    """Return whether a `client` record shows that the user wants to keep the session, by a title or by archiving."""
    choices = _decode_choices(client)
    return choices.titled or choices.archived


def is_archived(client: bytes) -> bool:
    """Return whether a `client` record says that the session is archived."""
    return _decode_choices(client).archived


def _decode_choices(client: bytes) -> _Client:
    try:
        return _decode_client(client)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return _Client()
