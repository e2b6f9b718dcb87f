import asyncio
import os
import signal

import pytest

from dragoman.event_loop import Stopped, run

STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_stops_what_runs_and_afterwards_does_what_it_did_before(number):
    before = [signal.getsignal(each) for each in STOPPING]

    async def wait_for_ever():
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    with pytest.raises(Stopped) as stopped:
        run(wait_for_ever())
    assert stopped.value.signal_number == number
    assert [signal.getsignal(each) for each in STOPPING] == before
