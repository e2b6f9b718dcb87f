"""Messages with a direction, one a line, in the spellings that people use.

`{"dir":"out","time":1763240000.5,"message":{…}}`: the direction is under one of several names, and the message is under
another, as an object or as the text of the line, or is the object itself. `in` and `out` are as the client sees them,
unless the first message with a known method says that it was the agent who recorded.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from dragoman.check.conversation import Conversation, Side
from dragoman.check.trace.direction import OTHER, sender_of
from dragoman.check.trace.source import Source
from dragoman.wire.message import BAD_JSON

DIRECTION_NAMES = ("dir", "direction", "from", "sender", "side", "source", "role", "type", "kind", "event")
MESSAGE_NAMES = ("message", "msg", "data", "payload", "line", "raw", "json", "body", "frame", "content", "rpc")
TIME_NAMES = ("time", "ts", "timestamp", "at", "t", "at_s", "date")

_BY_NAME: dict[str, Side] = {
    **dict.fromkeys(
        ("client", "editor", "ide", "c2a", "clienttoagent", "client>agent", "c>a", "stdin", "toagent"), "client"
    ),
    **dict.fromkeys(("agent", "server", "a2c", "agenttoclient", "agent>client", "a>c", "stdout", "fromagent"), "agent"),
}
_BY_VIEW: dict[str, Side] = {
    **dict.fromkeys(("out", "outbound", "outgoing", "send", "sent", "tx", "write", ">"), "client"),
    **dict.fromkeys(("in", "inbound", "incoming", "recv", "receive", "received", "rx", "read", "<"), "agent"),
}
_ARROWS = str.maketrans({"→": ">", "←": "<", "-": None, "_": None, " ": None, "=": None})

MILLISECONDS_FROM = 1e11
"""A greater number is no count of seconds that a recording has, and so one of milliseconds."""


class _Line(NamedTuple):
    sender: Side
    by_view: bool
    at_s: float
    line: bytes
    method: object


def is_directed(first: dict[str, Any]) -> bool:
    """Tell whether the first object of a file has a direction and a message."""
    return _find_direction(first) is not None and _find_message(first) is not None


def read_directed(source: Source) -> Iterator[Conversation]:
    """Yield the one conversation of the file. Raises TraceUnreadable."""
    lines = [_read(source, number, value) for number, value in source.objects()]
    turned = _is_turned(lines)
    began = next((line.at_s for line in lines if line.at_s), 0.0)
    conversation = Conversation(source.path)
    for line in lines:
        sender = OTHER[line.sender] if turned and line.by_view else line.sender
        conversation.add(sender, line.line, max(0.0, line.at_s - began))
    yield conversation


def _read(source: Source, number: int, value: dict[str, Any]) -> _Line:
    direction = _find_direction(value)
    if direction is None:
        raise source.unreadable(
            f"expected who said it, under one of {', '.join(DIRECTION_NAMES[:4])}, as in client, agent, in or out",
            number,
        )
    message = _find_message(value)
    if message is None:
        raise source.unreadable(f"expected the message, under one of {', '.join(MESSAGE_NAMES[:4])}", number)
    line = message.encode() if isinstance(message, str) else msgspec.json.encode(message)
    return _Line(direction[0], direction[1], _read_time(value), line.strip(), _method(message))


def _find_direction(value: dict[str, Any]) -> tuple[Side, bool] | None:
    for name in DIRECTION_NAMES:
        given = value.get(name)
        if isinstance(given, str):
            spelled = given.strip().lower().translate(_ARROWS)
            if spelled in _BY_NAME:
                return _BY_NAME[spelled], False
            if spelled in _BY_VIEW:
                return _BY_VIEW[spelled], True
    return None


def _find_message(value: dict[str, Any]) -> Any:
    for name in MESSAGE_NAMES:
        if isinstance(value.get(name), (dict, str)):
            return value[name]
    if value.keys() & {"method", "result", "error"}:
        return {name: each for name, each in value.items() if name not in (*DIRECTION_NAMES, *TIME_NAMES)}
    return None


def _method(message: Any) -> object:
    if isinstance(message, str):
        try:
            message = msgspec.json.decode(message)
        except BAD_JSON:
            return None
    return message.get("method") if isinstance(message, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- any JSON


def _is_turned(lines: list[_Line]) -> bool:
    for line in lines:
        known = sender_of(line.method)
        if line.by_view and known is not None:
            return known != line.sender
    return False


def _read_time(value: dict[str, Any]) -> float:
    given = next((value[name] for name in TIME_NAMES if name in value), 0.0)
    if isinstance(given, str):
        try:
            return datetime.fromisoformat(given).timestamp()
        except ValueError:
            return 0.0
    if not isinstance(given, (int, float)):
        return 0.0
    seconds = float(given)
    while seconds > MILLISECONDS_FROM:
        seconds /= 1000
    return seconds
