"""Messages of the agent that are longer than the limit: nobody waits for them for ever."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.gateway.hub.overlong import EdgeSplitter, Glimpse, Overlong, glimpse
from dragoman.wire import LineSplitter, Oversized
from tests.gateway.hub.seeing import hub_of, seer

LIMIT = 100_000
LONG = "y" * (2 * LIMIT)


async def test_an_answer_that_is_too_long_is_an_error_in_words(tmp_path):
    async with hub_of(tmp_path, max_line_bytes=LIMIT) as hub:
        one = await seer(hub)
        error = (await one.ask("_echo", {"x": LONG}))["error"]
        assert "longer than 100000 bytes" in error["message"]
        assert "ask for less" in error["data"]["problem"]
        assert (await one.ask("_echo", {"x": 1}))["result"] == {"x": 1}


async def test_a_request_of_the_agent_that_is_too_long_is_refused(tmp_path):
    async with hub_of(tmp_path, max_line_bytes=LIMIT) as hub:
        one = await seer(hub)
        session = await one.new()
        await one.prompt(session, {"request": ["_much", {"x": LONG}]})
        assert "longer than 100000 bytes" in json.loads(one.said()[0])["error"]["data"]


async def test_an_update_that_is_too_long_is_told_of_and_the_rest_goes_on(tmp_path):
    async with hub_of(tmp_path, max_line_bytes=LIMIT) as hub:
        one = await seer(hub, marked=True)
        session = await one.new()
        await one.prompt(session, {"large": 2 * LIMIT}, {"say": "after"})
        assert one.said() == ["after"]
        told = await one.until(lambda message: "longer than" in message.get("params", {}).get("reason", ""))
        assert told["method"] == "_dragoman/agent"
        assert told["params"]["state"] == "ready"


@pytest.mark.parametrize(
    ("line", "seen"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"%b"}}', Glimpse("response", b"7")),
        (b' { "id" : "a\\"b" , "error":{"message":"%b"}}', Glimpse("response", b'"a\\"b"')),
        (b'{"jsonrpc":"2.0","result":{"id":3,"x":"%b"},"id":7}', Glimpse("response", b"7")),
        (b'{"result":{"id":3,"x":"%b"},"id":"7","jsonrpc":"2.0"}\r', Glimpse("response", b'"7"')),
        (b'{"result":{"x":"%b","id":3}}', Glimpse("response")),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"%b"}}', Glimpse("request", b"7")),
        (b'{"params":{"x":"%b"},"method":"m","id":7}', Glimpse("request", b"7")),
        (b'{"method":"m","params":{"x":"%b","y":{"id":5}}}', Glimpse("notification")),
        (b'{"text":"%b"}', Glimpse("unknown")),
        (b"%b", Glimpse("unknown")),
        (b'["%b"]', Glimpse("unknown")),
    ],
)
def test_the_ends_of_a_message_say_what_it_was(line, seen):
    (dropped,) = EdgeSplitter(1_000).feed(line % (b"x" * 10_000) + b"\n")
    assert isinstance(dropped, Overlong)
    assert glimpse(dropped) == seen


@given(st.lists(st.text("ab\n", max_size=12), max_size=12), st.integers(1, 9))
def test_lines_are_cut_as_anywhere_else(pieces, limit):
    edges, plain = EdgeSplitter(limit), LineSplitter(limit)
    cut, expected = [], []
    for piece in pieces:
        cut += edges.feed(piece.encode())
        expected += plain.feed(piece.encode())
    cut += edges.feed(b"\n")
    expected += plain.feed(b"\n")
    assert [Oversized(limit) if isinstance(line, Overlong) else line for line in cut] == expected
