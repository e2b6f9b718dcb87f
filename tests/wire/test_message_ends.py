"""The kind and ID that the two ends of a message reveal."""

import pytest

from dragoman.wire.framing import Oversized
from dragoman.wire.message import MessageEnds, read_ends
from tests.table import each_row


@each_row(
    ("line", "seen"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":"%b"}}', MessageEnds("response", b"7")),
        (b' { "id" : "a\\"b" , "error":{"message":"%b"}}', MessageEnds("response", b'"a\\"b"')),
        (b'{"jsonrpc":"2.0","result":{"id":3,"x":"%b"},"id":7}', MessageEnds("response", b"7")),
        (b'{"result":{"id":3,"x":"%b"},"id":"7","jsonrpc":"2.0"}\r', MessageEnds("response", b'"7"')),
        (b'{"result":{"x":"%b","id":3}}', MessageEnds("response")),
        (b'{"jsonrpc":"2.0","id":7,"method":"m","params":{"x":"%b"}}', MessageEnds("request", b"7")),
        (b'{"params":{"x":"%b"},"method":"m","id":7}', MessageEnds("request", b"7")),
        (b'{"method":"m","params":{"x":"%b","y":{"id":5}}}', MessageEnds("notification")),
        (b'{"text":"%b"}', MessageEnds("unknown")),
        (b"%b", MessageEnds("unknown")),
        (b'["%b"]', MessageEnds("unknown")),
    ],
)
def test_message_ends_reveal_kind_and_id(line, seen):
    dropped = Oversized.of(line % (b"x" * 10_000), 1_000)
    assert read_ends(dropped.head, dropped.tail) == seen


@pytest.mark.parametrize("size", [0, 10, 4_090])
def test_message_ends_may_overlap(size):
    line = b'{"id":7,"method":"m","params":"%b"}' % (b"x" * size)
    assert read_ends(line, line) == MessageEnds("request", b"7")
