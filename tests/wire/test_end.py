"""The states of a connection's end."""

import asyncio

import pytest

from dragoman.errors import ConnectionClosedError
from dragoman.wire.end import ConnectionEnd, EndState

GONE, LEFT = ConnectionClosedError("the other side is gone"), ConnectionClosedError("this side left")


async def test_connection_drains_lines_before_it_ends():
    end = ConnectionEnd()
    assert (end.state, end.has_input_ended, end.reason) == (EndState.OPEN, False, None)
    end.end_input(was_file=True)
    assert (end.state, end.has_input_ended, end.input_was_file, end.reason) == (EndState.DRAINING, True, True, None)
    assert end.end(GONE) is GONE
    assert (end.state, end.reason) == (EndState.ENDED, GONE)
    assert end.close(LEFT) is GONE
    assert (end.state, end.reason) == (EndState.CLOSED, GONE)


@pytest.mark.parametrize("has_ended", [False, True])
async def test_connection_can_be_closed_at_any_time_and_stays_closed(has_ended):
    end = ConnectionEnd()
    if has_ended:
        end.end_input(was_file=False)
    assert end.close(LEFT) is LEFT
    end.end_input(was_file=False)
    assert end.end(GONE) is LEFT
    assert (end.state, end.reason) == (EndState.CLOSED, LEFT)


async def test_waits_end_with_the_input_and_with_the_reason():
    end = ConnectionEnd()
    input_ended, ended = asyncio.ensure_future(end.wait_input_ended()), asyncio.ensure_future(end.wait_ended())
    end.end_input(was_file=False)
    await input_ended
    assert not ended.done()
    end.end(GONE)
    await ended
