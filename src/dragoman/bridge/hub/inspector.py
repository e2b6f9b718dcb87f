"""The wire inspector: the last messages between the bridge and its agent, for whoever wants to look.

Lines are kept as they came, in the batches in which they came: while nobody looks that is all that is done.
"""

from typing import Any

from msgspec import UNSET, Raw

from dragoman.bridge.envelope import session_of
from dragoman.bridge.supervisor.process import FROM_AGENT, TO_AGENT, Direction, WireBatch, line_size
from dragoman.protocol.secrecy import hide_secrets
from dragoman.wire import Malformed, Message, Oversized, parse

MAX_SHOWN_BYTES = 64 * 1024
"""Of one message: more of it would help nobody who looks at a list."""

_MAX_OPEN = 10_000
"""Requests whose answer is waited for, to say how long it took."""

Entry = dict[str, Any]


class Examiner:
    """Makes of each line what people want to know of it."""

    def __init__(self) -> None:
        self._open: dict[tuple[Direction, bytes], tuple[float, str, str | None]] = {}

    def examine(self, batch: WireBatch) -> list[Entry]:
        """Take a batch apart."""
        return [self._examine(batch, batch.first + index, line) for index, line in enumerate(batch.lines)]

    def _examine(self, batch: WireBatch, number: int, line: bytes | Oversized) -> Entry:
        entry: Entry = {"n": number, "time": round(batch.time * 1000, 3), "direction": batch.direction}
        message = parse(line)
        if isinstance(message, Malformed):
            entry["kind"] = "malformed"
        else:
            self._describe(entry, message, batch)
        entry["size"] = line_size(line)
        entry |= _show(line)
        return entry

    def _describe(self, entry: Entry, message: Message, batch: WireBatch) -> None:
        if message.id is not UNSET:
            entry["id"] = Raw(bytes(message.id))
        if message.method is None:
            self._describe_answer(entry, message, batch)
            return
        session_id = session_of(message.params)
        entry["kind"] = "notification" if message.id is UNSET else "request"
        entry["method"] = message.method
        if session_id is not None:
            entry["sessionId"] = session_id
        if message.id is not UNSET:
            self._open[batch.direction, bytes(message.id)] = batch.time, message.method, session_id
            if len(self._open) > _MAX_OPEN:
                del self._open[next(iter(self._open))]

    def _describe_answer(self, entry: Entry, message: Message, batch: WireBatch) -> None:
        entry["kind"] = "response"
        asked = FROM_AGENT if batch.direction == TO_AGENT else TO_AGENT
        request = self._open.pop((asked, bytes(message.id)), None) if message.id is not UNSET else None
        if request is None:
            return
        began, entry["method"], session_id = request
        entry["latencyMs"] = round((batch.time - began) * 1000, 3)
        if session_id is not None:
            entry["sessionId"] = session_id


def _show(line: bytes | Oversized) -> Entry:
    if not isinstance(line, bytes):
        return {"line": f"a line of more than {line.max_bytes} bytes, which was dropped", "cut": True}
    shown = hide_secrets(line)
    text = shown[:MAX_SHOWN_BYTES].decode(errors="replace")
    return {"line": text, "cut": True} if len(shown) > MAX_SHOWN_BYTES else {"line": text}
