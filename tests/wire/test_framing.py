import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from dragoman.wire import LineSplitter, Oversized
from dragoman.wire.framing import EDGE_BYTES, GIVE_UP_FACTOR, BlockSplitter


def feed_all(splitter, pieces):
    lines = []
    for piece in pieces:
        lines += splitter.feed(piece)
    return lines + splitter.finish()


def test_lines_are_returned_without_newlines():
    assert LineSplitter().feed(b"one\ntwo\n") == [b"one", b"two"]


def test_line_may_arrive_in_many_pieces():
    splitter = LineSplitter()
    assert splitter.feed(b"o") == []
    assert splitter.feed(b"n") == []
    assert splitter.feed(b"e\ntw") == [b"one"]
    assert splitter.feed(b"o\n") == [b"two"]


def test_blank_lines_are_dropped():
    assert LineSplitter().feed(b"\n \n\r\none\n\n") == [b"one"]


def test_last_line_without_a_newline_is_returned_by_finish():
    splitter = LineSplitter()
    assert splitter.feed(b"torn") == []
    assert splitter.finish() == [b"torn"]
    assert splitter.finish() == []


def test_oversized_line_is_replaced_and_the_next_one_is_whole():
    splitter = LineSplitter(max_bytes=4)
    assert splitter.feed(b"12345\nabcd\n") == [Oversized(4, b"12345", b"12345"), b"abcd"]


def test_oversized_line_is_reported_once_when_it_ends():
    splitter = LineSplitter(max_bytes=4)
    assert splitter.feed(b"123") == []
    assert splitter.feed(b"45") == []
    assert splitter.feed(b"67890") == []
    assert splitter.feed(b"1\nok\n") == [Oversized(4, b"12345678901", b"12345678901"), b"ok"]


def test_both_ends_of_an_oversized_line_are_kept():
    line = bytes(range(14, 254)) * 100
    for size in (1, 100, 5_000, len(line)):
        pieces = [line[at : at + size] for at in range(0, len(line), size)]
        [report] = feed_all(LineSplitter(max_bytes=10_000), [*pieces, b"\n"])
        assert report == Oversized(10_000, line[:EDGE_BYTES], line[-EDGE_BYTES:])


def test_line_that_never_ends_is_still_reported():
    splitter = LineSplitter(max_bytes=1_000)
    lines = []
    for _ in range(2 * GIVE_UP_FACTOR):
        lines += splitter.feed(b"x" * 1_000)
    assert lines == [Oversized(1_000, b"x" * EDGE_BYTES)]
    assert splitter.feed(b"\nok\n") == [b"ok"]


def test_line_of_exactly_the_limit_passes():
    splitter = LineSplitter(max_bytes=4)
    assert splitter.feed(b"12") == []
    assert splitter.feed(b"34\n") == [b"1234"]


def test_unfinished_oversized_line_is_reported_once():
    splitter = LineSplitter(max_bytes=4)
    assert feed_all(splitter, [b"123456", b"7"]) == [Oversized(4, b"1234567", b"1234567")]


def test_memory_stays_bounded_while_a_long_line_is_skipped():
    splitter = LineSplitter(max_bytes=100_000)
    block = b"x" * 65_536
    tracemalloc.start()
    for _ in range(1_000):
        splitter.feed(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1_000_000


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_do_not_depend_on_how_the_stream_is_split(lines, data):
    stream = b"\n".join(lines)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    pieces = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    limit = data.draw(st.integers(1, 30))
    expected = []
    for line in stream.split(b"\n"):
        if len(line) > limit:
            expected.append(Oversized.of(line, limit))
        elif line.strip():
            expected.append(line)
    assert feed_all(LineSplitter(max_bytes=limit), pieces) == expected


def lines_of(blocks):
    """Yield the lines of blocks and the reports of oversized lines, in order."""
    for block in blocks:
        if isinstance(block, Oversized):
            yield block
        else:
            assert block.endswith(b"\n")
            yield from (line for line in block.split(b"\n") if line.strip())


@given(st.lists(st.text("ab \n", max_size=30).map(str.encode), max_size=8), st.integers(4, 40))
def test_blocks_contain_the_same_lines_as_single_lines(pieces, limit):
    one_by_one, in_blocks = LineSplitter(limit), BlockSplitter(limit)
    for piece in pieces:
        assert list(lines_of(in_blocks.feed(piece))) == one_by_one.feed(piece)
    assert list(lines_of(in_blocks.finish())) == one_by_one.finish()


def test_whole_lines_of_one_read_form_one_block():
    splitter = BlockSplitter()
    assert splitter.feed(b"one\ntwo\nthr") == [b"one\ntwo\n"]
    assert splitter.feed(b"ee\nfour\n") == [b"three\nfour\n"]
    assert splitter.feed(b"five") == []
    assert splitter.finish() == [b"five\n"]
