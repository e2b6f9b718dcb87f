"""HTTP/1.1 at the level of bytes."""

import asyncio
import json

import pytest

from dragoman.bridge.front.limits import ServerLimits
from tests.bridge.front.client import PATIENCE_S, http_viewer
from tests.bridge.front.raw_http1 import INITIALIZE
from tests.bridge.front.serving import TOKEN, open_stream, serving

CONFIG = "GET /config.json HTTP/1.1"


def write(served, line, *headers, body=b""):
    """Return a request with a credential."""
    lines = [line, f"host: 127.0.0.1:{served.port}", f"authorization: Bearer {TOKEN}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


async def read_answer(reader):
    """Return status, headers and body of an answer with a content length."""
    head = (await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_S)).decode().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return int(head[0].split()[1]), headers, body


async def test_one_connection_serves_several_requests(served):
    async with open_stream(served) as (reader, writer):
        for _ in range(3):
            writer.write(write(served, CONFIG))
            status, headers, body = await read_answer(reader)
            assert status == 200
            assert json.loads(body)["role"] == "owner"
            assert headers["date"].endswith("GMT")
            assert "server" not in headers


async def test_pipelined_requests_are_answered_in_order(served):
    async with open_stream(served) as (reader, writer):
        paths = ["/config.json", "/nothing", "/static/js/app/app.js"] * 20
        writer.write(b"".join(write(served, f"GET {path} HTTP/1.1") for path in paths))
        statuses = [(await read_answer(reader))[0] for _ in paths]
        assert statuses == [200, 404, 200] * 20


async def test_megabytes_of_pipelined_requests_are_not_buffered(served):
    async with open_stream(served) as (reader, writer):
        for _ in range(1_500):
            writer.write(write(served, "GET /static/js/app/app.js HTTP/1.1", "x-much: " + "y" * 2_000))
        for _ in range(1_500):
            assert (await read_answer(reader))[0] == 200
        writer.close()


@pytest.mark.parametrize(("line", "header"), [(CONFIG, "connection: close"), (CONFIG[:-1] + "0", "x: y")])
async def test_connection_close_is_honored(served, line, header):
    async with open_stream(served) as (reader, writer):
        writer.write(write(served, line, header))
        status, headers, _ = await read_answer(reader)
        assert (status, headers["connection"]) == (200, "close")
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


async def test_expect_100_continue_is_answered(served):
    async with open_stream(served) as (reader, writer):
        size = f"content-length: {len(INITIALIZE)}"
        writer.write(
            write(served, "POST /acp HTTP/1.1", "content-type: application/json", size, "expect: 100-continue")
        )
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
        writer.write(INITIALIZE)
        assert (await read_answer(reader))[0] == 200


async def test_refused_request_gets_no_100_continue(served):
    async with open_stream(served) as (reader, writer):
        lines = ["POST /acp HTTP/1.1", f"host: 127.0.0.1:{served.port}", "content-length: 9", "expect: 100-continue"]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        assert (await read_answer(reader))[0] == 401


async def test_chunked_body_is_accepted(served):
    async with open_stream(served) as (reader, writer):
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in INITIALIZE) + b"0\r\n\r\n"
        head = ("content-type: application/json", "transfer-encoding: chunked")
        writer.write(write(served, "POST /acp HTTP/1.1", *head, body=chunks))
        assert (await read_answer(reader))[0] == 200


async def test_unread_body_is_not_the_next_request(served):
    async with open_stream(served) as (reader, writer):
        hidden = write(served, CONFIG)
        head = ["POST /acp HTTP/1.1", f"host: 127.0.0.1:{served.port}", f"content-length: {len(hidden) + 1}"]
        writer.write("\r\n".join([*head, "", ""]).encode() + hidden)
        assert (await read_answer(reader))[0] == 401
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


async def test_head_request_gets_no_body(served):
    async with open_stream(served) as (reader, writer):
        writer.write(write(served, "HEAD /config.json HTTP/1.1") + write(served, CONFIG))
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head
        assert b"content-length: 0" not in head
        assert (await read_answer(reader))[0] == 200


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET / HTTP/9\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"no request at all\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: gzip\r\n\r\n", 501),
    ],
)
async def test_invalid_http1_is_refused_with_a_reason(served, sent, status):
    async with open_stream(served) as (reader, writer):
        writer.write(sent)
        answer, headers, body = await read_answer(reader)
        assert answer == status
        assert json.loads(body)["error"]
        assert headers["x-content-type-options"] == "nosniff"
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


async def test_invalid_chunk_ends_the_request(served):
    async with open_stream(served) as (reader, writer):
        head = ("content-type: application/json", "transfer-encoding: chunked")
        writer.write(write(served, "POST /acp HTTP/1.1", *head, body=b"2\r\n{}\r\nnonsense\r\n"))
        assert (await read_answer(reader))[0] == 400
        assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""


@pytest.mark.parametrize("size", [33_000, 60_000, 300_000])
async def test_too_long_headers_are_refused(served, size):
    async with open_stream(served) as (reader, writer):
        writer.write(write(served, CONFIG, "x-much: " + "y" * size))
        status, _, body = await read_answer(reader)
        assert status == 431
        assert "32768 bytes" in json.loads(body)["error"]


async def test_headers_up_to_the_limit_are_accepted(served):
    async with open_stream(served) as (reader, writer):
        writer.write(write(served, CONFIG, *(f"x-{number}: {'y' * 3_000}" for number in range(10))))
        assert (await read_answer(reader))[0] == 200


async def test_other_upgrades_are_ordinary_requests(served):
    async with open_stream(served) as (reader, writer):
        writer.write(write(served, CONFIG, "connection: upgrade, http2-settings", "upgrade: h2c", "http2-settings: AA"))
        assert (await read_answer(reader))[0] == 200


async def test_last_answer_says_connection_close(tmp_path):
    async def go_on(served, reader, writer):
        await asyncio.wait_for(served.app.stopping.wait(), PATIENCE_S)
        writer.write(b"1,2]")
        return await read_answer(reader)

    async with serving(tmp_path, limits=ServerLimits(stop_s=PATIENCE_S)) as served, http_viewer(served) as viewer:
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
        writer.write(write(served, "POST /acp HTTP/1.1", "content-type: application/json", "content-length: 5"))
        writer.write(b"[")
        await writer.drain()
        await viewer.initialize()  # by now the other request is running
        last = asyncio.create_task(go_on(served, reader, writer))
    status, headers, _ = await last
    assert (status, headers["connection"]) == (501, "close")
    writer.close()
