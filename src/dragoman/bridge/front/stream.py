"""Event streams: the messages of a viewer's stream, as server-sent events.

    id: 6f1c.42.3
    data: {"jsonrpc":"2.0","method":"session/update","params":{…}}

One message an event, without a name; comments keep the stream alive. A stream begins with an id by itself, which
makes no event: whoever loses the stream before the first one still knows where to go on.
"""

import asyncio
from collections.abc import Sequence

from dragoman.bridge.delivery import StreamEvent, ViewerStream
from dragoman.bridge.front.exchange import Exchange
from dragoman.bridge.front.race import race

COMMENT = b":\n\n"
HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # or nginx keeps what it has until there is more
]


def encode(events: Sequence[StreamEvent]) -> bytes:
    """Write messages as server-sent events."""
    return b"".join([_encode_one(event) for event in events])


def _encode_one(event: StreamEvent) -> bytes:
    data = event.data
    if b"\r" in data or b"\n" in data:  # white space to JSON, the end of a line to an event stream
        data = data.translate(_ONE_LINE)
    if event.id is None:
        return b"data: %b\n\n" % data
    return b"id: %b\ndata: %b\n\n" % (event.id, data)


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")


class EventStream:
    """Carries a stream to one viewer, no faster than that viewer takes it."""

    def __init__(self, exchange: Exchange, stream: ViewerStream, keep_alive_s: float) -> None:
        self._exchange = exchange
        self._stream = stream
        self._keep_alive_s = keep_alive_s
        self._writing = 0
        self._wrote_at = 0.0

    async def run(self, *ends: asyncio.Event) -> None:
        """Send until the stream or the other side ends, or one of these events comes."""
        try:
            event_id = self._stream.event_id()
            await self._exchange.write(COMMENT if event_id is None else b"id: %b\n\n" % event_id)
            is_gone, *_ = await race(
                self._exchange.wait_gone(), self._pump(), self._keep_alive(), *(end.wait() for end in ends)
            )
        finally:
            self._stream.end()  # or what is not taken any more would count against the viewer
        if not (self._writing or is_gone):  # one that takes nothing would not take the end either: the server cuts it
            await self._exchange.write(b"", more=False)

    async def _pump(self) -> None:
        while events := await self._stream.take():
            await self._write(encode(events))

    async def _write(self, piece: bytes) -> None:
        self._writing += 1
        await self._exchange.write(piece)
        self._writing -= 1
        self._wrote_at = asyncio.get_running_loop().time()

    async def _keep_alive(self) -> None:
        """Send a comment whenever the last event is old, so that proxies, and TCP, see that the stream is in use."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(self._keep_alive_s)
            if loop.time() - self._wrote_at >= self._keep_alive_s:
                await self._write(COMMENT)
