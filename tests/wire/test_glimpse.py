"""What the ends of a message say of it."""

import pytest

from dragoman.wire.framing import Oversized
from dragoman.wire.glimpse import Glimpse, glimpse


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
    dropped = Oversized.of(line % (b"x" * 10_000), 1_000)
    assert glimpse(dropped.head, dropped.tail) == seen


@pytest.mark.parametrize("size", [0, 10, 4_090])
def test_the_ends_of_a_message_may_overlap(size):
    line = b'{"id":7,"method":"m","params":"%b"}' % (b"x" * size)
    assert glimpse(line, line) == Glimpse("request", b"7")
