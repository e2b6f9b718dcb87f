"""The states of a connection's end: they move forward only, and the first reason counts."""

import asyncio

import pytest

from dragoman.errors import ConnectionClosed
from dragoman.wire.end import ConnectionEnd, EndState

GONE, LEFT = ConnectionClosed("the other side is gone"), ConnectionClosed("this side left")


async def test_a_connection_drains_its_lines_before_its_end_is_explained():
    end = ConnectionEnd()
    assert (end.state, end.has_input_ended, end.reason) == (EndState.OPEN, False, None)
    end.end_input(was_file=True)
    assert (end.state, end.has_input_ended, end.input_was_file, end.reason) == (EndState.DRAINING, True, True, None)
    assert end.explain(GONE) is GONE
    assert (end.state, end.reason) == (EndState.ENDED, GONE)
    assert end.close(LEFT) is GONE
    assert (end.state, end.reason) == (EndState.CLOSED, GONE)


@pytest.mark.parametrize("has_ended", [False, True])
async def test_it_can_be_closed_at_any_time_and_stays_closed(has_ended):
    end = ConnectionEnd()
    if has_ended:
        end.end_input(was_file=False)
    assert end.close(LEFT) is LEFT
    end.end_input(was_file=False)
    assert end.explain(GONE) is LEFT
    assert (end.state, end.reason) == (EndState.CLOSED, LEFT)


async def test_waits_are_over_when_the_input_has_ended_and_when_the_reason_is_known():
    end = ConnectionEnd()
    ended, explained = asyncio.ensure_future(end.wait_input_ended()), asyncio.ensure_future(end.wait_explained())
    end.end_input(was_file=False)
    await ended
    assert not explained.done()
    end.explain(GONE)
    await explained
