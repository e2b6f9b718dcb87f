import asyncio
from contextlib import asynccontextmanager

import pytest
from msgspec import Raw
from msgspec.json import decode
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve

from dragoman.errors import ConnectionClosedError
from dragoman.wire import Peer
from dragoman.wire.framing import MAX_FRAME_BYTES
from dragoman.wire.websocket import WebSocketTransport
from tests.waiting import until


class Echo:
    def __init__(self):
        self.seen = []

    async def request(self, request):
        return request.params

    def notification(self, method, params):
        self.seen.append(decode(params))


@asynccontextmanager
async def connected(handler=None, accept=None):
    async def answer(connection):
        async with Peer(WebSocketTransport(connection), Echo()) as peer:
            await peer.wait_ended()

    async with (
        asyncio.timeout(50),
        serve(accept or answer, "127.0.0.1", 0, max_size=MAX_FRAME_BYTES, compression=None) as server,
    ):
        port = server.sockets[0].getsockname()[1]
        connection = await connect(f"ws://127.0.0.1:{port}", max_size=MAX_FRAME_BYTES, compression=None)
        async with Peer(WebSocketTransport(connection), handler or Echo()) as peer:
            yield peer


async def test_a_call_is_answered():
    async with connected() as peer:
        assert decode(await peer.call("echo", {"x": "é"})) == {"x": "é"}


async def test_large_message_arrives():
    async with connected() as peer:
        assert decode(await peer.call("echo", "x" * 1_000_000)) == "x" * 1_000_000


async def test_message_over_the_limit_is_the_reason_of_the_end():
    async def flood(connection):
        await connection.send(b" " * (MAX_FRAME_BYTES + 1), text=True)

    async with connected(accept=flood) as peer:
        with pytest.raises(
            ConnectionClosedError,
            match="longer than the limit of 67108864 bytes; the other side must send smaller messages",
        ):
            await peer.call("echo", 1)


async def test_each_message_is_sent_as_its_own_text_frame():
    frames = []

    async def collect(connection):
        async for frame in connection:
            frames.append(frame)
            if len(frames) == 3:
                await connection.close()

    async with connected(accept=collect) as peer:
        for number in range(3):
            await peer.notify("n", number)
        await peer.wait_ended()
    assert frames == [f'{{"jsonrpc":"2.0","method":"n","params":{number}}}' for number in range(3)]


async def test_frame_with_line_breaks_is_one_message():
    handler = Echo()

    async def pretty(connection):
        await connection.send('{\n "jsonrpc": "2.0",\r\n "method": "n",\n "params": [1]\n}')
        await connection.wait_closed()

    async with connected(handler, accept=pretty) as peer:
        await until(lambda: handler.seen)
        assert peer
    assert handler.seen == [[1]]


async def test_carriage_return_does_not_split_a_message():
    frames = []

    async def collect(connection):
        frames.append(await connection.recv())
        await connection.close()

    async with connected(accept=collect) as peer:
        await peer.notify("n", Raw(b'{"a":\r1}'))
        await peer.wait_ended()
    assert frames == ['{"jsonrpc":"2.0","method":"n","params":{"a":\r1}}']


async def test_end_reason_contains_the_close_code_and_text():
    async def refuse(connection):
        await connection.recv()
        await connection.close(4001, "go away")

    async with connected(accept=refuse) as peer:
        with pytest.raises(ConnectionClosedError, match=r"4001 \(go away\)"):
            await peer.call("m")


async def test_a_sender_waits_for_a_peer_that_does_not_read():
    release = asyncio.Event()

    async def stall(connection):
        connection.transport.pause_reading()
        await release.wait()
        connection.transport.resume_reading()
        async for _ in connection:
            pass

    async with connected(accept=stall) as peer:
        sent = 0

        async def flood():
            nonlocal sent
            for _ in range(20_000):
                await peer.notify("n", "x" * 1_000)
                sent += 1

        flooding = asyncio.ensure_future(flood())
        while sent < 1_000:
            await asyncio.sleep(0)
        for _ in range(1_000):
            await asyncio.sleep(0)
        assert not flooding.done()
        release.set()
        await flooding
