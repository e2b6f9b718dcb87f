"""The frames from the pumps to the recorder arrive in order or are counted, and never block."""

import os
import threading

from dragoman.check.tap.feed import HEADER_BYTES, Feed, FrameKind, FrameReader

CHUNK = b"x" * 100_000


def read_all(pipe):
    frames = FrameReader()
    while data := os.read(pipe, 1 << 20):
        yield from frames.feed(data)


def test_frames_arrive_in_order_after_a_slow_reader():
    reading, writing = os.pipe()
    feed = Feed(writing)
    for number in range(100):  # ten times the size of the pipe
        feed.put(FrameKind.AGENT if number % 2 else FrameKind.CLIENT, b"%d " % number + CHUNK)
    got = []
    reader = threading.Thread(target=lambda: got.extend(read_all(reading)))
    reader.start()
    feed.close(10)
    reader.join(10)
    os.close(reading)
    assert [int(frame.data.split()[0]) for frame in got] == list(range(100))
    assert [frame.kind for frame in got[:2]] == [FrameKind.CLIENT, FrameKind.AGENT]
    assert all(frame.data.endswith(CHUNK) for frame in got)


def test_excess_bytes_are_dropped_and_counted():
    reading, writing = os.pipe()
    feed = Feed(writing, max_waiting_bytes=1_000_000)
    for _ in range(100):
        feed.put(FrameKind.AGENT, CHUNK)
    got = []
    reader = threading.Thread(target=lambda: got.extend(read_all(reading)))
    reader.start()
    feed.close(10)
    reader.join(10)
    os.close(reading)
    sent = sum(len(frame.data) for frame in got if frame.kind == FrameKind.AGENT)
    skipped = sum(int(frame.data) for frame in got if frame.kind == FrameKind.SKIPPED)
    assert skipped > 0
    assert sent + skipped == 100 * len(CHUNK)


def test_unread_bytes_are_counted_at_the_end():
    reading, writing = os.pipe()
    feed = Feed(writing)
    for _ in range(100):
        feed.put(FrameKind.AGENT, CHUNK)
    left = feed.close(0.01)
    in_pipe = 0
    while data := os.read(reading, 1 << 20):
        in_pipe += len(data)
    os.close(reading)
    assert left + in_pipe == 100 * (HEADER_BYTES + len(CHUNK))


def test_feed_survives_an_exited_recorder():
    reading, writing = os.pipe()
    feed = Feed(writing)
    os.close(reading)
    feed.put(FrameKind.AGENT, CHUNK)
    feed.put(FrameKind.AGENT, CHUNK)
    assert feed.lost
    feed.close(1)


def test_frames_are_split_from_any_pieces():
    reading, writing = os.pipe()
    feed = Feed(writing)
    for data in (b"", b"a", b"bc\n"):
        feed.put(FrameKind.CLIENT, data)
    feed.close(1)
    written = os.read(reading, 1000)
    os.close(reading)
    frames = FrameReader()
    got = [frame for at in range(len(written)) for frame in frames.feed(written[at : at + 1])]
    assert [frame.data for frame in got] == [b"", b"a", b"bc\n"]
    assert got[0].time_ns <= got[2].time_ns
