"""The tails of histories: how much memory they use for their messages and for the copies for viewers."""

import json
import tracemalloc

import pytest

from dragoman.bridge.delivery.stream_item import mark_cursors
from dragoman.store.runs import Tail, TailBudget

KIB = 1024
MIB = 1024 * KIB


UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 500}}
LINE = json.dumps(
    {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": UPDATE}}
).encode()


def lines(count):
    """Return this many lines in new bytes."""
    return count * (LINE + b"\n")


def read(tail, after, end, *, with_cursors):
    """Read a tail as a viewer does, a batch at a time."""
    runs, at = [], after
    while at < end:
        more, _, at = tail.slice(at, end, 64 * KIB, mark_cursors("epoch") if with_cursors else None)
        for run in more:
            run.encode(joined)
        runs += more
    return runs


def joined(messages, ids):
    """Encode messages in a form that takes as much memory as they do."""
    assert ids is None
    return b" ".join(messages)


@pytest.fixture
def traced():
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()


@pytest.mark.parametrize("with_cursors", [False, True])
def test_thousands_of_sessions_stay_within_the_tail_limit(traced, with_cursors):
    budget = TailBudget(1 * MIB, 6 * MIB)
    before = traced()
    tails = []
    for _ in range(2_000):
        tail = Tail(budget, 0)
        tail.extend(1, lines(20), 0)
        read(tail, 0, 20, with_cursors=with_cursors)
        tails.append(tail)
    bare = 2_000 * 1_000  # the memory of an empty tail
    assert 3 * MIB < traced() - before - bare < 1.2 * 6 * MIB


def test_long_session_keeps_no_more_copies_than_messages(traced):
    budget = TailBudget(4 * MIB, 64 * MIB)
    tail = Tail(budget, 0)
    before = traced()
    for first in range(1, 20_001, 100):
        tail.extend(first, lines(100), 0)
        read(tail, first - 1, first + 99, with_cursors=True)
    assert traced() - before < 2.25 * 4 * MIB  # the tail itself may be a quarter longer before it is cut


@pytest.mark.parametrize("with_cursors", [False, True])
def test_viewers_share_the_encoded_tail(with_cursors):
    tail = Tail(TailBudget(4 * MIB, 64 * MIB), 0)
    tail.extend(1, lines(50), 0)
    one, two = read(tail, 0, 50, with_cursors=with_cursors), read(tail, 0, 50, with_cursors=with_cursors)
    assert len(one) == 1
    assert one[0].encode(joined) is two[0].encode(joined)


def test_released_copies_are_rebuilt_identically():
    tail = Tail(TailBudget(64 * KIB, 64 * MIB), 0)
    tail.extend(1, lines(80), 7)
    one, two = read(tail, 0, 80, with_cursors=True), read(tail, 0, 80, with_cursors=True)
    assert b"".join([run.lines for run in one]) == b"".join([run.lines for run in two])
    assert json.loads(one[0].messages()[0])["params"]["_meta"] == {"dragoman": {"cursor": "epoch.1", "time": 7}}


def test_dropped_tail_uses_no_budget():
    budget = TailBudget(1 * MIB, 1 * MIB)
    tails = []
    for _ in range(50):
        tail = Tail(budget, 0)
        tail.extend(1, lines(100), 0)
        read(tail, 0, 100, with_cursors=True)
        tail.drop()
        tails.append(tail)
    kept = Tail(budget, 0)
    kept.extend(1, lines(1_000), 0)
    other = Tail(budget, 0)
    other.extend(1, lines(100), 0)
    assert kept.start < 1_000  # there is room for both


def test_numbers_of_messages_leave_out_records():
    tail = Tail(TailBudget(MIB, MIB), start=0)
    tail.extend(2, lines(2), 0)
    tail.extend(5, lines(3), 0)
    assert tail.numbers_after(0, 9) == [2, 3, 5, 6, 7]
    assert tail.numbers_after(2, 3) == [3, 5, 6]
    assert tail.numbers_after(7, 9) == []
