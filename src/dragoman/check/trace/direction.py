"""Who said a message, told from the message itself and what came before it.

A method says who handles it, so who sends it. An answer goes against the request with its id; when both sides have
asked with the same id, what the answer holds decides. Where it holds nothing that would, as an error does, it is taken
for the answer to what was asked last: a prompt waits while the agent asks, and not the other way round.
"""

from typing import Any, cast

import msgspec

from dragoman.check.conversation import Side
from dragoman.protocol.methods import METHODS

OTHER: dict[Side, Side] = {"client": "agent", "agent": "client"}

CANCEL = "$/cancel_request"


def sender_of(method: object) -> Side | None:
    """Return who sends a method; None where both do, or it is not known."""
    known = METHODS.get(method) if isinstance(method, str) else None
    if known is None or known.side not in OTHER:
        return None
    return OTHER[known.side]


class Directions:
    """Tells the sender of each message of one conversation, in order."""

    def __init__(self) -> None:
        self._asked: dict[Side, dict[str, str]] = {"client": {}, "agent": {}}
        self._last: dict[str, Side] = {}
        """Who was the last to ask with an id."""

    def tell(self, message: dict[str, Any]) -> Side:
        """Return who sent the next message."""
        if "method" not in message:
            return self._tell_answer(message)
        sender = self._tell_method(message)
        if "id" in message:
            key = _key(message["id"])
            self._asked[sender][key] = str(message["method"])
            self._last[key] = sender
        return sender

    def _tell_method(self, message: dict[str, Any]) -> Side:
        known = sender_of(message["method"])
        if known is not None:
            return known
        params = message.get("params")
        if message["method"] == CANCEL and isinstance(params, dict):
            key = _key(cast("dict[str, Any]", params).get("requestId"))
            return "agent" if key in self._asked["agent"] and key not in self._asked["client"] else "client"
        return "client" if "id" in message else "agent"

    def _tell_answer(self, message: dict[str, Any]) -> Side:
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
    """Tell whether an answer has a member that the method's result has, or none where none is needed."""
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
