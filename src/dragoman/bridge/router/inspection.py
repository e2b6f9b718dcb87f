"""The wire inspector: viewers that look at the messages between the bridge and its agent.

A viewer gets the remembered messages with the answer to `_dragoman/inspect`, and new ones as `_dragoman/wire`. Lines
are decoded only while a viewer looks.
"""

import asyncio
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.delivery import Viewer, ViewerRequest
from dragoman.bridge.envelope import make_notification, session_of
from dragoman.bridge.supervisor import WireLog
from dragoman.bridge.supervisor.process import FROM_AGENT, TO_AGENT, Direction, WireBatch, line_size
from dragoman.errors import ErrorCode
from dragoman.protocol.secrecy import hide_secrets
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.message import BAD_JSON

MAX_SHOWN_BYTES = 64 * 1024
"""Of one message: more of it would help no reader of a list."""

_MAX_OPEN = 10_000
"""Requests whose answer is waited for, to tell how long it took."""

ShownMessage = dict[str, Any]


class _Params(msgspec.Struct, rename="camel"):
    on: bool
    session_id: str | None = None


class WireInspector:
    """Answers `_dragoman/inspect`, and sends `_dragoman/wire` while a viewer wants it."""

    def __init__(self, wire_log: WireLog) -> None:
        self.traffic = wire_log.traffic
        """The counts of messages, whether anybody looks at them or not."""
        self._wire_log = wire_log
        self._viewers: dict[Viewer, str | None] = {}
        """The session whose messages each viewer wants; None for all messages."""
        self._decoder = WireDecoder()
        self._fresh: list[WireBatch] = []

    @property
    def is_open(self) -> bool:
        """Whether a viewer looks, so that lines are decoded."""
        return bool(self._viewers)

    def answer(self, request: ViewerRequest) -> None:
        """Begin or end a look at the wire."""
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_JSON as error:
            problem = f"params: {error}; expected on: true or false, and maybe a sessionId"
            request.refuse(ErrorCode.INVALID_PARAMS, problem)
            return
        if not params.on:
            self.viewer_left(request.viewer)
            request.answer({"entries": []})
            return
        self._tell()
        decoder = WireDecoder()
        if not self._viewers:
            self._decoder = decoder
            self._wire_log.on_batch = self._take
        messages = [message for batch in self._wire_log.batches() for message in decoder.decode(batch)]
        self._viewers[request.viewer] = params.session_id
        request.answer({"entries": _of_session(messages, params.session_id)})

    def viewer_left(self, viewer: Viewer) -> None:
        """Tell a viewer no more."""
        self._viewers.pop(viewer, None)
        if not self._viewers:
            self._wire_log.on_batch = None
            self._fresh = []

    def _take(self, batch: WireBatch) -> None:
        if not self._fresh:
            asyncio.get_running_loop().call_soon(self._tell)
        self._fresh.append(batch)

    def _tell(self) -> None:
        fresh, self._fresh = self._fresh, []
        messages = [message for batch in fresh for message in self._decoder.decode(batch)]
        if not messages:
            return
        told: dict[str | None, bytes] = {}
        for viewer, session_id in list(self._viewers.items()):
            if not viewer.has_room():
                continue  # the numbers of the messages show it that some are missing
            if session_id not in told:
                wanted = _of_session(messages, session_id)
                told[session_id] = make_notification("_dragoman/wire", {"entries": wanted}) if wanted else b""
            if told[session_id]:
                viewer.send(told[session_id])


def _of_session(messages: list[ShownMessage], session_id: str | None) -> list[ShownMessage]:
    if session_id is None:
        return messages
    return [message for message in messages if message.get("sessionId") == session_id]


class WireDecoder:
    """Makes of each line the facts that people want to know."""

    def __init__(self) -> None:
        self._open: dict[tuple[Direction, bytes], tuple[float, str, str | None]] = {}

    def decode(self, batch: WireBatch) -> list[ShownMessage]:
        """Decode the lines of a batch."""
        return [self._decode(batch, batch.first + index, line) for index, line in enumerate(batch.lines())]

    def _decode(self, batch: WireBatch, number: int, line: bytes | Oversized) -> ShownMessage:
        shown: ShownMessage = {"n": number, "time": round(batch.time * 1000, 3), "direction": batch.direction}
        message = parse(line)
        if isinstance(message, Malformed):
            shown["kind"] = "malformed"
        else:
            self._describe(shown, message, batch)
        shown["size"] = line_size(line)
        shown |= _show(line)
        return shown

    def _describe(self, shown: ShownMessage, message: Message, batch: WireBatch) -> None:
        if message.id is not UNSET:
            shown["id"] = Raw(bytes(message.id))
        if message.method is None:
            self._describe_answer(shown, message, batch)
            return
        session_id = session_of(message.params)
        shown["kind"] = "notification" if message.id is UNSET else "request"
        shown["method"] = message.method
        if session_id is not None:
            shown["sessionId"] = session_id
        if message.id is not UNSET:
            self._open[batch.direction, bytes(message.id)] = batch.time, message.method, session_id
            if len(self._open) > _MAX_OPEN:
                del self._open[next(iter(self._open))]

    def _describe_answer(self, shown: ShownMessage, message: Message, batch: WireBatch) -> None:
        shown["kind"] = "response"
        asked = FROM_AGENT if batch.direction == TO_AGENT else TO_AGENT
        request = self._open.pop((asked, bytes(message.id)), None) if message.id is not UNSET else None
        if request is None:
            return
        began, shown["method"], session_id = request
        shown["latencyMs"] = round((batch.time - began) * 1000, 3)
        if session_id is not None:
            shown["sessionId"] = session_id


def _show(line: bytes | Oversized) -> ShownMessage:
    if not isinstance(line, bytes):
        return {"line": f"a line of more than {line.max_bytes} bytes, which was dropped", "cut": True}
    shown = hide_secrets(line)
    text = shown[:MAX_SHOWN_BYTES].decode(errors="replace")
    return {"line": text, "cut": True} if len(shown) > MAX_SHOWN_BYTES else {"line": text}
