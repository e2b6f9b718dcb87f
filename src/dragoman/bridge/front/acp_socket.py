"""`/acp` over a WebSocket, with one message per text frame in both directions.

`PANEL_PATH` is the same for the panel of marimo. The panel sends binary frames and connects to a fixed path without
extra headers. Its credential is the cookie of the bridge's page on the same host.
"""

import asyncio
from itertools import chain
from struct import Struct
from typing import Any

from dragoman.bridge import StreamItem, Viewer, ViewerStream
from dragoman.bridge.front.acp_http import CONNECTION_ID, Affinity
from dragoman.bridge.front.asgi import SEND_FRAMES, Receive, Scope, Send, SendNow
from dragoman.bridge.front.exchange import race
from dragoman.bridge.guard import Guard

PANEL_PATH = "/message"

GOING_AWAY = 1001
TRY_LATER = 1013

_LONGEST_REASON_BYTES = 120
"""The longest reason that fits into a close frame."""

_ONE_LINE = {0x0A: "\t", 0x0D: "\t"}
"""Line ends become tabs. Both are white space between JSON tokens, and neither is allowed inside a string."""

_USUAL_BYTES = 4096
"""Most messages are smaller. The frame heads of all smaller sizes need half a megabyte."""

_TEXT = 0x81
_SHORT = Struct("!BB").pack
_MEDIUM = Struct("!BBH").pack
_LONG = Struct("!BBQ").pack


class ViewerSocket:
    """Connects one viewer by one WebSocket, at the speed at which the viewer reads."""

    def __init__(self, receive: Receive, send: Send, viewer: Viewer, *, takes_bytes: bool = False) -> None:
        self._receive = receive
        self._send = send
        self._viewer = viewer
        self._takes_bytes = takes_bytes
        self._is_writing = False
        self._send_now: SendNow | None = None

    async def accept(self, scope: Scope, guard: Guard, affinity: Affinity) -> None:
        """Accept the WebSocket and send the viewer's id."""
        extensions: dict[str, Any] = scope.get("extensions") or {}
        self._send_now = extensions.get(SEND_FRAMES)
        headers = [(CONNECTION_ID, self._viewer.id.encode()), *affinity.cookie(scope)]
        subprotocol = guard.accepted_subprotocol(scope)
        await self._send({"type": "websocket.accept", "subprotocol": subprotocol, "headers": headers})

    async def run(self, stopping: asyncio.Event) -> None:
        """Pass messages until the client leaves, the viewer is closed or the bridge stops."""
        stream, closed = self._viewer.stream(), self._viewer.closed
        if (send_now := self._send_now) is not None:
            stream.on_push = lambda: send_now(lambda: _encode(stream.pop_batch()))
        has_left, *_ = await race(self._read(), self._write(stream), closed.wait(), stopping.wait())
        if not (
            has_left or self._is_writing
        ):  # a client that does not read would not read the close frame: the server cuts it
            await self._close_from_our_side(stopping)

    async def _close_from_our_side(self, stopping: asyncio.Event) -> None:
        if stopping.is_set():
            code, reason = GOING_AWAY, "the bridge stops"
        else:
            code, reason = TRY_LATER, self._viewer.close_reason or "the bridge closed this connection; connect again"
        await self._close(code, reason)

    async def _close(self, code: int, reason: str) -> None:
        short = reason.encode()[:_LONGEST_REASON_BYTES].decode(errors="ignore")
        await self._send({"type": "websocket.close", "code": code, "reason": short})

    async def _read(self) -> None:
        while (message := await self._receive())["type"] == "websocket.receive":
            text = message.get("text")
            if text is None and self._takes_bytes:
                text = message.get("bytes", b"").decode(errors="replace")
            if text is None:
                continue  # the ACP proposal ignores binary frames
            line = text.translate(_ONE_LINE).encode() if "\n" in text or "\r" in text else text.encode()
            self._viewer.receive(line)

    async def _write(self, stream: ViewerStream) -> None:
        while items := await stream.next_batch():
            self._is_writing = True
            await self._send_all(items)
            self._is_writing = False

    async def _send_all(self, items: list[StreamItem]) -> None:
        if self._send_now is not None:
            await self._send({"type": SEND_FRAMES, "frames": _encode(items)})
            return
        for text in [text for item in items for text in item.messages()]:
            await self._send({"type": "websocket.send", "text": text.decode()})


def _encode(items: list[StreamItem]) -> bytes:
    return b"".join([item.encode(encode_texts) for item in items])


class _Heads(dict[int, bytes]):
    """A cache of frame heads by message size, which makes encoding a block of frames fast."""

    def __missing__(self, size: int) -> bytes:
        head = _head(size)
        if size < _USUAL_BYTES:
            self[size] = head
        return head


_heads = _Heads()


def encode_texts(texts: list[bytes], ids: list[bytes] | None = None) -> bytes:
    """Return messages as unfragmented, unmasked text frames (RFC 6455, 5.2), the same bytes for every viewer."""
    del ids
    return b"".join(chain.from_iterable(zip(map(_heads.__getitem__, map(len, texts)), texts, strict=True)))


def _head(size: int) -> bytes:
    if size < 126:
        return _SHORT(_TEXT, size)
    if size < 0x10000:
        return _MEDIUM(_TEXT, 126, size)
    return _LONG(_TEXT, 127, size)
