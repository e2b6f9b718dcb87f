"""Batches of WebSocket messages in one write."""

import asyncio
import json

import pytest
from websockets.frames import Opcode
from websockets.protocol import CLIENT, Protocol

from dragoman.bridge.bridge import Bridge
from dragoman.bridge.front.acp_socket import encode_texts
from dragoman.bridge.front.app import Application
from dragoman.bridge.front.asgi import SEND_FRAMES
from tests.bridge.front.serving import TOKEN, make_guard, make_settings
from tests.table import each_row

SIZES = [0, 1, 125, 126, 127, 65_535, 65_536, 200_000]


@each_row("size", SIZES)
def test_message_of_any_size_is_one_text_frame(size):
    connection = Protocol(CLIENT)
    connection.receive_data(encode_texts([b"x" * size]))
    [frame] = connection.events_received()
    assert (frame.opcode, frame.fin, frame.data) == (Opcode.TEXT, True, b"x" * size)


def test_frames_keep_order_and_boundaries():
    texts = ["x" * size for size in SIZES] + ["ä€😀"]
    connection = Protocol(CLIENT)
    connection.receive_data(encode_texts([text.encode() for text in texts]))
    assert [frame.data.decode() for frame in connection.events_received()] == texts


class PlainServer:
    """An ASGI server with one viewer, which sends `initialize` and disconnects after the answer."""

    def __init__(self, extensions):
        headers = [(b"host", b"127.0.0.1:1"), (b"authorization", f"Bearer {TOKEN}".encode())]
        self.scope = {"type": "websocket", "path": "/acp", "headers": headers, "client": ("127.0.0.1", 1)}
        self.scope |= {"query_string": b"", "scheme": "ws", "subprotocols": [], "extensions": extensions}
        initialize = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        self.says = [{"type": "websocket.connect"}, {"type": "websocket.receive", "text": json.dumps(initialize)}]
        self.sent = []
        self.answered = asyncio.Event()

    async def receive(self):
        if self.says:
            return self.says.pop(0)
        await self.answered.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(self, message):
        self.sent.append(message)
        if message["type"] != "websocket.accept":
            self.answered.set()


@pytest.mark.parametrize(
    ("extensions", "kind"),
    [({}, "websocket.send"), (None, "websocket.send"), ({SEND_FRAMES: lambda make_frames: None}, SEND_FRAMES)],
)
async def test_frame_batches_need_the_server_extension(tmp_path, extensions, kind):
    server = PlainServer(extensions)
    async with Bridge(make_settings(tmp_path)) as bridge:
        app = Application(bridge, make_guard(1))
        await app(server.scope, server.receive, server.send)
    assert [message["type"] for message in server.sent] == ["websocket.accept", kind]


class PushServer(PlainServer):
    """An ASGI server that sends frames at once if it has room."""

    def __init__(self, *, has_room):
        super().__init__({SEND_FRAMES: self.send_now})
        self.says.append({"type": "websocket.receive", "text": '{"jsonrpc":"2.0","id":2,"method":"_unknown"}'})
        self.has_room = has_room
        self.pushed = b""

    async def send(self, message):
        self.sent.append(message)
        self.end_at_answer(message.get("frames", b""))

    def send_now(self, make_frames):
        if self.has_room:
            self.pushed += make_frames()
            self.end_at_answer(self.pushed)

    def end_at_answer(self, frames):
        if b'"id":2' in frames:
            self.answered.set()


@pytest.mark.parametrize("has_room", [True, False])
async def test_answer_is_sent_at_once_if_there_is_room(tmp_path, has_room):
    server = PushServer(has_room=has_room)
    async with Bridge(make_settings(tmp_path)) as bridge:
        app = Application(bridge, make_guard(1))
        await app(server.scope, server.receive, server.send)
    later = b"".join(message.get("frames", b"") for message in server.sent)
    assert (server.pushed.count(b'"id":2'), later.count(b'"id":2')) == ((1, 0) if has_room else (0, 1))
