"""The ends of journals in memory: how much of them there is, whatever viewers want of them."""

import json
import tracemalloc

import pytest

from dragoman.bridge.delivery.runs import JournalTail, TailBudget

KIB = 1024
MIB = 1024 * KIB


UPDATE = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "x" * 500}}
LINE = json.dumps(
    {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": UPDATE}}
).encode()


def lines(count):
    """Return so many lines, with bytes of their own."""
    return count * (LINE + b"\n")


def read(tail, after, end, *, with_cursors):
    """Read a tail as a viewer does, a batch at a time."""
    runs, at = [], after
    while at < end:
        more, _, at = tail.slice(at, end, 64 * KIB, with_cursors=with_cursors)
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
def test_thousands_of_sessions_take_no_more_memory_than_all_tails_may(traced, with_cursors):
    budget = TailBudget(1 * MIB, 6 * MIB)
    before = traced()
    tails = []
    for _ in range(2_000):
        tail = JournalTail(budget, b"epoch", 0)
        tail.extend(1, lines(20), 0)
        read(tail, 0, 20, with_cursors=with_cursors)
        tails.append(tail)
    bare = 2_000 * 1_000  # what a tail costs with nothing in it
    assert 3 * MIB < traced() - before - bare < 1.2 * 6 * MIB


def test_one_long_session_keeps_no_more_copies_than_messages(traced):
    budget = TailBudget(4 * MIB, 64 * MIB)
    tail = JournalTail(budget, b"epoch", 0)
    before = traced()
    for first in range(1, 20_001, 100):
        tail.extend(first, lines(100), 0)
        read(tail, first - 1, first + 99, with_cursors=True)
    assert traced() - before < 2.25 * 4 * MIB  # the tail itself may be a quarter longer before it is cut


@pytest.mark.parametrize("with_cursors", [False, True])
def test_copies_are_made_once_for_all_who_are_at_the_edge(with_cursors):
    tail = JournalTail(TailBudget(4 * MIB, 64 * MIB), b"epoch", 0)
    tail.extend(1, lines(50), 0)
    one, two = read(tail, 0, 50, with_cursors=with_cursors), read(tail, 0, 50, with_cursors=with_cursors)
    assert len(one) == 1
    assert one[0].encode(joined) is two[0].encode(joined)


def test_copies_that_were_let_go_are_made_again_the_same():
    tail = JournalTail(TailBudget(64 * KIB, 64 * MIB), b"epoch", 0)
    tail.extend(1, lines(80), 7)
    one, two = read(tail, 0, 80, with_cursors=True), read(tail, 0, 80, with_cursors=True)
    assert b"".join([run.lines for run in one]) == b"".join([run.lines for run in two])
    assert json.loads(one[0].messages()[0])["params"]["_meta"] == {"dragoman": {"cursor": "epoch.1", "time": 7}}


def test_a_tail_that_was_let_go_counts_for_nothing():
    budget = TailBudget(1 * MIB, 1 * MIB)
    tails = []
    for _ in range(50):
        tail = JournalTail(budget, b"epoch", 0)
        tail.extend(1, lines(100), 0)
        read(tail, 0, 100, with_cursors=True)
        tail.drop()
        tails.append(tail)
    kept = JournalTail(budget, b"epoch", 0)
    kept.extend(1, lines(1_000), 0)
    other = JournalTail(budget, b"epoch", 0)
    other.extend(1, lines(100), 0)
    assert kept.start < 1_000  # there is room for both
