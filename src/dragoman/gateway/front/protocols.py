"""Hypercorn's protocols, with what they lack.

HTTP/2      A stream's writer lets everything through, whether the other side takes it or not: its buffer asks how
            much was just taken out where it should ask how much is left. `Window` asks the right question.
            A stream that is given up in the middle is left hanging. It is reset now.
            What arrives for a stream that was answered already (the rest of a body that was too long) ends the
            whole connection with all its other streams. It is let go now.
WebSocket   Compression cannot be turned off, and costs more than the messages themselves. It is not offered.
            A message that is too long is refused, and kept all the same while it lasts. It is let go now.
            Each message is written by itself. Many can be written at once now (see `frames.py`).
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import h2.errors
import h2.events
import h2.exceptions
import hypercorn.protocol
import hypercorn.protocol.h2
import hypercorn.protocol.h11
from hypercorn.protocol.events import Body, Data, Event, Request
from hypercorn.protocol.h2 import BUFFER_HIGH_WATER, BUFFER_LOW_WATER, BufferCompleteError, H2Protocol, StreamBuffer
from hypercorn.protocol.ws_stream import ASGIWebsocketState, WSStream
from hypercorn.typing import ASGISendEvent
from wsproto.connection import ConnectionState

from dragoman.gateway.front.frames import SEND_MANY, encode_texts

TOO_BIG = 1009


class Window(StreamBuffer):
    """What one HTTP/2 stream has to send: whoever writes waits until most of it was taken."""

    async def push(self, data: bytes) -> None:
        if self._complete:
            raise BufferCompleteError
        self.buffer.extend(data)
        await self._is_empty.clear()
        while len(self.buffer) >= BUFFER_HIGH_WATER and not self._complete:
            await self._paused.clear()
            await self._paused.wait()

    async def pop(self, max_length: int) -> bytes:
        data = bytes(self.buffer[:max_length])
        del self.buffer[:max_length]
        if len(self.buffer) < BUFFER_LOW_WATER:
            await self._paused.set()
        if not self.buffer:
            await self._is_empty.set()
        return data


class Http2(H2Protocol):
    """HTTP/2 with windows that hold."""

    async def _create_stream(self, request: h2.events.RequestReceived) -> None:
        await super()._create_stream(request)  # which starts a task that has not run yet
        if request.stream_id in self.stream_buffers:
            self.stream_buffers[request.stream_id] = Window(self.context.event_class)

    async def _close_stream(self, stream_id: int) -> None:
        await super()._close_stream(stream_id)
        buffer = self.stream_buffers.get(stream_id)
        if buffer is None or buffer.complete or self.closed:
            return
        await buffer.close()
        with suppress(h2.exceptions.ProtocolError):
            self.connection.reset_stream(stream_id, h2.errors.ErrorCodes.CANCEL)
            await self._flush()
        self.priority.unblock(stream_id)  # the task that sends finds it gone, and forgets it
        await self.has_data.set()

    async def _handle_events(self, events: list[h2.events.Event]) -> None:
        for event in events:
            if isinstance(event, h2.events.DataReceived) and event.stream_id not in self.streams:
                self._let_go(event)
            else:
                await super()._handle_events([event])
        await self._flush()

    def _let_go(self, event: h2.events.DataReceived) -> None:
        with suppress(h2.exceptions.ProtocolError):
            self.connection.acknowledge_received_data(event.flow_controlled_length, event.stream_id)


class WebSocket(WSStream):
    """A WebSocket without compression, with a limit that holds, and with many messages in one write."""

    _is_overfull = False

    async def handle(self, event: Event) -> None:
        if isinstance(event, Request):
            headers = [pair for pair in event.headers if pair[0].lower() != b"sec-websocket-extensions"]
            await super().handle(replace(event, headers=headers))  # which starts a task that has not run yet
            self.scope["extensions"][SEND_MANY] = {}
            return
        if self._is_overfull and isinstance(event, Body | Data):
            return
        await super().handle(event)
        if not self._is_overfull and self.buffer.length > self.buffer.max_length:
            self._is_overfull = True
            self.buffer.clear()
            await self._tell_application()

    async def app_send(self, message: ASGISendEvent | None) -> None:
        many = cast("dict[str, Any] | None", message)  # hypercorn knows the messages of ASGI alone
        if many is None or many["type"] != SEND_MANY:
            await super().app_send(message)
        elif self._is_open():
            await self.send(Data(stream_id=self.stream_id, data=encode_texts(many["texts"])))

    def _is_open(self) -> bool:
        if self.closed or self.state is not ASGIWebsocketState.CONNECTED:
            return False
        return self.connection.state is ConnectionState.OPEN

    async def _tell_application(self) -> None:
        put = cast("Callable[[object], Awaitable[None]] | None", self.app_put)  # hypercorn leaves its type open
        if put is not None:
            await put({"type": "websocket.disconnect", "code": TOO_BIG})


def install() -> None:
    """Make hypercorn use these, in this process."""
    for module, name, better in (
        (hypercorn.protocol, "H2Protocol", Http2),
        (hypercorn.protocol.h2, "WSStream", WebSocket),
        (hypercorn.protocol.h11, "WSStream", WebSocket),
    ):
        setattr(module, name, better)
