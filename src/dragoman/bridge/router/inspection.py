"""The wire inspector: shows viewers the messages between the bridge and its agent.

A viewer receives the recorded messages in the answer to `_dragoman/inspect`, and new ones as `_dragoman/wire`. Lines
are decoded only while a viewer has the inspector open.
"""

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.bridge.envelope import make_notification
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.viewers import Viewer, ViewerRequest
from dragoman.bridge.wire_log import FROM_AGENT, TO_AGENT, Direction, WireBatch, WireLog, line_size
from dragoman.errors import ErrorCode, RpcError
from dragoman.recording.secrecy import hide_secrets
from dragoman.wire import Malformed, Message, Oversized, parse
from dragoman.wire.envelope import session_of
from dragoman.wire.message import BAD_JSON

MAX_SHOWN_BYTES = 64 * 1024
"""Bytes shown per message. A list needs no more."""

_MAX_OPEN = 10_000
"""Requests without an answer that are stored to measure the latency."""

ShownMessage = dict[str, Any]


class _Params(msgspec.Struct, rename="camel"):
    on: bool
    session_id: str | None = None


class WireInspector:
    """Answers `_dragoman/inspect`, and sends `_dragoman/wire` while a viewer wants it."""

    def __init__(self, wire_log: WireLog) -> None:
        self.traffic = wire_log.traffic
        """The counts of all messages, which do not depend on viewers."""
        self._wire_log = wire_log
        self._viewers: dict[Viewer, str | None] = {}
        """The session whose messages each viewer wants, or None for all messages."""
        self._opening: dict[Viewer, ViewerRequest] = {}
        """The viewers for which recorded lines are decoded, each with its last request."""
        self._decoder = WireDecoder()
        self._fresh: list[WireBatch] = []

    @property
    def is_open(self) -> bool:
        """Whether a viewer has the inspector open, so that lines are decoded."""
        return bool(self._viewers)

    async def inspect(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/inspect`: decode the recorded lines in a thread, then show a viewer new ones, or stop."""
        viewer = request.viewer
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_JSON as error:
            problem = f"params: {error}; expected on: true or false, and optionally a sessionId"
            raise RpcError(ErrorCode.INVALID_PARAMS, problem) from None
        if not params.on:
            self.viewer_left(viewer)
            return {"entries": []}
        self._opening[viewer] = request
        decoder, batches = WireDecoder(), self._wire_log.batches()
        messages = await asyncio.to_thread(decoder.decode_all, batches)
        if self._opening.get(viewer) is not request:
            return {"entries": []}  # the viewer left, or sent another request
        del self._opening[viewer]
        last = batches[-1].first if batches else 0
        messages += decoder.decode_all([batch for batch in self._wire_log.batches() if batch.first > last])
        self._send_fresh()
        if not self._viewers:
            self._decoder = decoder
            self._wire_log.on_batch = self._add_batch
        self._viewers[viewer] = params.session_id
        return {"entries": _of_session(messages, params.session_id)}

    def viewer_left(self, viewer: Viewer) -> None:
        """Stop sending messages to a viewer."""
        self._opening.pop(viewer, None)
        self._viewers.pop(viewer, None)
        if not self._viewers:
            self._wire_log.on_batch = None
            self._fresh = []

    def _add_batch(self, batch: WireBatch) -> None:
        if not self._fresh:
            asyncio.get_running_loop().call_soon(self._send_fresh)
        self._fresh.append(batch)

    def _send_fresh(self) -> None:
        fresh, self._fresh = self._fresh, []
        messages = self._decoder.decode_all(fresh)
        if not messages:
            return
        lines: dict[str | None, bytes] = {}
        for viewer, session_id in list(self._viewers.items()):
            if not viewer.has_room():
                continue  # the gap in the message numbers shows that some are missing
            if session_id not in lines:
                wanted = _of_session(messages, session_id)
                lines[session_id] = make_notification("_dragoman/wire", {"entries": wanted}) if wanted else b""
            if lines[session_id]:
                viewer.send(lines[session_id])


def _of_session(messages: list[ShownMessage], session_id: str | None) -> list[ShownMessage]:
    if session_id is None:
        return messages
    return [message for message in messages if message.get("sessionId") == session_id]


class WireDecoder:
    """Decodes lines into entries of the inspector, with the latency of each answer."""

    def __init__(self) -> None:
        self._open: dict[tuple[Direction, bytes], tuple[float, str, str | None]] = {}

    def decode_all(self, batches: Iterable[WireBatch]) -> list[ShownMessage]:
        """Decode the lines of batches."""
        return [
            self._decode(batch, batch.first + index, line)
            for batch in batches
            for index, line in enumerate(batch.lines())
        ]

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
