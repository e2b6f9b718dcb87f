"""Recordings with one message per line, with or without a direction.

**With a direction:** `{"dir":"out","time":1763240000.5,"message":{…}}`. The direction and the message each have one of
several names. The message may be an object or the text of the line, or the object itself. `in` and `out` are from the
client's view, unless the first message with a known method shows that the agent recorded.

**Without a direction,** as acpx writes them: a method determines its sender, because only one side handles it. A
response belongs to the request with its id. If both sides have an open request with that id, the fields of the response
decide. Without such fields, as in an error, it counts as the response to the latest request, because a prompt waits
while the agent sends requests, but not the reverse. The journal of an acpx session has its own lines between the
messages, and continues after a restart of the agent. Each `initialize` starts another conversation.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple, cast

import msgspec

from dragoman.check.conversation import OTHER, RecordedConversation, Side
from dragoman.check.trace.source import Source
from dragoman.protocol.methods import METHODS, NOTIFICATIONS
from dragoman.wire.message import BAD_JSON

CANCEL = "$/cancel_request"


def sender_of(method: object) -> Side | None:
    """Return the side that sends a method, or None if both do or if it is unknown."""
    if not isinstance(method, str):
        return None
    sides = {table[method].side for table in (METHODS, NOTIFICATIONS) if method in table}
    return next((OTHER[side] for side in OTHER if sides == {side}), None)


class Directions:
    """Determines the sender of each message of one conversation, in order."""

    def __init__(self) -> None:
        self._asked: dict[Side, dict[str, str]] = {"client": {}, "agent": {}}
        self._last: dict[str, Side] = {}
        """The side that last sent a request with an id."""

    def find_sender(self, message: dict[str, Any]) -> Side:
        """Return the sender of the next message."""
        if "method" not in message:
            return self._find_answer_sender(message)
        sender = self._find_method_sender(message)
        if "id" in message:
            key = _key(message["id"])
            self._asked[sender][key] = str(message["method"])
            self._last[key] = sender
        return sender

    def _find_method_sender(self, message: dict[str, Any]) -> Side:
        known = sender_of(message["method"])
        if known is not None:
            return known
        params = message.get("params")
        if message["method"] == CANCEL and isinstance(params, dict):
            key = _key(cast("dict[str, Any]", params).get("requestId"))
            return "agent" if key in self._asked["agent"] and key not in self._asked["client"] else "client"
        return "client" if "id" in message else "agent"

    def _find_answer_sender(self, message: dict[str, Any]) -> Side:
        key = _key(message.get("id"))
        asked: list[Side] = [side for side in OTHER if key in self._asked[side]]
        if len(asked) == 2:
            asked = [side for side in asked if _fits(self._asked[side][key], message)] or [self._last[key]]
        if not asked:
            return "agent"
        del self._asked[asked[0]][key]
        return OTHER[asked[0]]


def _key(request_id: object) -> str:
    return msgspec.json.encode(request_id).decode()


def _fits(method: str, message: dict[str, Any]) -> bool:
    """Return whether a response has a member of the method's result, or no members if none is required."""
    known = METHODS.get(method)
    result = message.get("result")
    if known is None or known.result is None or not isinstance(result, dict):
        return False
    try:
        fields = msgspec.structs.fields(known.result)
    except TypeError:
        return False
    names = {field.encode_name for field in fields}
    members = cast("dict[str, Any]", result).keys()
    return bool(names & members) if members else not any(field.required for field in fields)


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
"""A greater number is not a plausible time in seconds, so it is in milliseconds."""


class _Line(NamedTuple):
    sender: Side
    by_view: bool
    at_s: float
    line: bytes
    method: object


def is_directed(first: dict[str, Any]) -> bool:
    """Return whether the first object of a file has a direction and a message."""
    return _find_direction(first) is not None and _find_message(first) is not None


def read_directed(source: Source) -> Iterator[RecordedConversation]:
    """Yield the one conversation of the file. Raises TraceError."""
    lines = [_read(source, number, value) for number, value in source.objects()]
    is_agent_view = _is_agent_view(lines)
    began = next((line.at_s for line in lines if line.at_s), 0.0)
    conversation = RecordedConversation(source.path)
    for line in lines:
        sender = OTHER[line.sender] if is_agent_view and line.by_view else line.sender
        conversation.add(sender, line.line, max(0.0, line.at_s - began))
    yield conversation


def _read(source: Source, number: int, value: dict[str, Any]) -> _Line:
    direction = _find_direction(value)
    if direction is None:
        raise source.unreadable(
            f"no sender found; expected a field {', '.join(DIRECTION_NAMES[:3])} or {DIRECTION_NAMES[3]} with the "
            "value client, agent, in or out",
            number,
        )
    message = _find_message(value)
    if message is None:
        raise source.unreadable(
            f"no message found; expected a field {', '.join(MESSAGE_NAMES[:3])} or {MESSAGE_NAMES[3]}", number
        )
    line = message.encode() if isinstance(message, str) else msgspec.json.encode(message)
    return _Line(direction[0], direction[1], _read_time(value), line.strip(), _method(message))


def _find_direction(value: dict[str, Any]) -> tuple[Side, bool] | None:
    for name in DIRECTION_NAMES:
        direction = value.get(name)
        if isinstance(direction, str):
            spelled = direction.strip().lower().translate(_ARROWS)
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


def _is_agent_view(lines: list[_Line]) -> bool:
    """Return whether `in` and `out` are from the agent's view. The first method that only one side sends decides."""
    for line in lines:
        known = sender_of(line.method)
        if line.by_view and known is not None:
            return known != line.sender
    return False


def _read_time(value: dict[str, Any]) -> float:
    time = next((value[name] for name in TIME_NAMES if name in value), 0.0)
    if isinstance(time, str):
        try:
            return datetime.fromisoformat(time).timestamp()
        except ValueError:
            return 0.0
    if not isinstance(time, (int, float)):
        return 0.0
    seconds = float(time)
    while seconds > MILLISECONDS_FROM:
        seconds /= 1000
    return seconds


_MESSAGE = frozenset({"jsonrpc", "method", "result", "error"})
_JOURNAL = "acpx."
"""The prefix of the schema of acpx's own lines."""


def is_bare(first: dict[str, Any]) -> bool:
    """Return whether the first object of a file is a message, or starts a journal of acpx."""
    return _is_mark(first) or (bool(first.keys() & _MESSAGE) and ("jsonrpc" in first or "id" in first))


def read_bare(source: Source) -> Iterator[RecordedConversation]:
    """Yield the conversations of the file, one for each start of the agent. Raises TraceError."""
    directions = Directions()
    conversation = RecordedConversation(source.path)
    count = 1
    for number, message in source.objects():
        if _is_mark(message):
            continue
        if not message.keys() & _MESSAGE:
            raise source.unreadable("expected a message, which has a method, a result or an error", number)
        if message.get("method") == "initialize" and conversation.entries:
            yield conversation
            count += 1
            directions = Directions()
            conversation = RecordedConversation(f"{source.path} ({count})")
        conversation.add(directions.find_sender(message), msgspec.json.encode(message))
    yield conversation


def _is_mark(value: dict[str, Any]) -> bool:
    return "jsonrpc" not in value and str(value.get("schema", "")).startswith(_JOURNAL)
