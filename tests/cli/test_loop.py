import asyncio
import os
import signal

import pytest

from dragoman.event_loop import StoppedError, run

STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


@pytest.mark.parametrize("number", STOPPING)
def test_signal_stops_the_loop_and_its_handler_is_restored(number):
    before = [signal.getsignal(each) for each in STOPPING]

    async def wait_for_ever():
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()

    with pytest.raises(StoppedError) as stopped:
        run(wait_for_ever())
    assert stopped.value.signal_number == number
    assert [signal.getsignal(each) for each in STOPPING] == before
