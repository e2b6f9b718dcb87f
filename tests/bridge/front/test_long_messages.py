"""Messages of 5 and 20 MB pass in both directions over each transport."""

import json

import pytest

from dragoman.bridge.front.limits import RequestLimits
from tests.bridge.front.client import PATIENCE_S, http_viewer, texts, until_answer
from tests.bridge.front.serving import serving
from tests.bridge.front.sockets import dial, open_session, order
from tests.bridge.front.sockets import until_answer as until_answer_by_socket

LONG_PATIENCE_S = 3 * PATIENCE_S
"""Two HTTP/2 stacks in Python need over two seconds of the processor for 20 MB."""

of_size = pytest.mark.parametrize("size", [5_000_000, pytest.param(20_000_000, marks=pytest.mark.extended)])


@of_size
async def test_long_messages_pass_over_a_websocket(served, size):
    async with dial(served) as socket:
        session = await open_session(socket)
        await socket.send(order(session, chunks=1, bytes=size, padding="y" * size))
        seen = await until_answer_by_socket(socket, 2)
    said = [each["params"]["update"]["content"]["text"] for each in seen if '"0:x' in json.dumps(each)[:1_000]]
    assert [len(text) for text in said] == [size + 2]


@of_size
@pytest.mark.parametrize("is_http2", [False, True])
async def test_long_messages_pass_over_http_unbroken_by_comments(tmp_path, tls, is_http2, size):
    options = {"http2": True, "verify": False} if is_http2 else {}
    async with (
        serving(tmp_path, tls=tls if is_http2 else None, requests=RequestLimits(keep_alive_s=0.01)) as served,
        http_viewer(served, **options) as viewer,
    ):
        await viewer.initialize()
        async with viewer.stream() as connection:
            session = await viewer.open_session(connection)
            async with viewer.stream(session) as events:
                number = await viewer.prompt(session, chunks=1, bytes=size, padding="y" * size)
                seen = await until_answer(number, events, LONG_PATIENCE_S)
    assert [len(text) for text in texts(seen)] == [size + 2]
    assert seen[-1].message["result"]["stopReason"] == "end_turn"
