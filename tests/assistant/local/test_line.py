import asyncio

import pytest

from dragoman.assistant.models.local.engine import MAX_AHEAD, ModelQueue, ThreadStream
from dragoman.errors import ModelFailure


def test_whoever_comes_first_is_served_first():
    line = ModelQueue()
    first, second, third = line.join(), line.join(), line.join()
    assert [place.turn.done() for place in (first, second, third)] == [True, False, False]
    first.leave()
    assert [second.turn.done(), third.turn.done()] == [True, False]


def test_one_who_gives_up_is_passed_over_and_may_leave_twice():
    line = ModelQueue()
    first, second, third = line.join(), line.join(), line.join()
    second.leave()
    second.leave()
    assert not third.turn.done()
    first.leave()
    assert third.turn.done()


def test_a_line_that_is_too_long_is_refused_in_words():
    line = ModelQueue(max_waiting=1)
    line.join()
    waiting = line.join()
    with pytest.raises(ModelFailure, match="1 sessions wait"):
        line.join()
    waiting.leave()
    line.join()


async def test_cancelling_a_waiter_does_not_spoil_the_turn():
    line = ModelQueue()
    first, second = line.join(), line.join()
    waiter = asyncio.ensure_future(asyncio.wrap_future(second.turn))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.wait([waiter])
    first.leave()
    assert second.turn.done()
    assert not second.turn.cancelled()


async def test_items_come_in_order_and_then_the_error():
    def produce(give):
        for number in range(200):
            give(number)
        raise ValueError("enough")

    stream = ThreadStream(produce, "test")
    stream.start()
    items = stream.items()
    assert [await anext(items) for _ in range(200)] == list(range(200))
    with pytest.raises(ValueError, match="enough"):
        await anext(items)
    assert stream.join(30)


async def test_the_thread_is_never_far_ahead_and_stops_when_left():
    given = []

    def produce(give):
        while not give(len(given)):
            given.append(1)

    stream = ThreadStream(produce, "test")
    stream.start()
    items = stream.items()
    assert await anext(items) == 0
    assert len(given) <= MAX_AHEAD + 2
    await items.aclose()
    assert stream.join(30)
    assert len(given) <= MAX_AHEAD + 2


def test_a_closed_loop_ends_the_thread():
    async def leave():
        stream = ThreadStream(lambda give: [None for _ in iter(lambda: give(1), True)] and None, "test")
        stream.start()
        return stream

    stream = asyncio.run(leave())
    stream.stop()
    assert stream.join(30)
