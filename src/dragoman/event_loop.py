"""The event loop of a command: uvloop if it is installed, with a clean end on a signal."""

import asyncio
import signal
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_STOPPING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class StoppedError(SystemExit):
    """A signal stopped the process. If uncaught, the process exits with 128 plus the signal, as shells expect."""

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        super().__init__(128 + signal_number)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end. SIGTERM, SIGHUP and SIGINT cancel it and then raise `StoppedError`.

    Afterwards the former signal handlers are restored. Otherwise uvloop would catch signals after its loop has closed.
    """
    stopped_by: list[int] = []
    handlers = {number: signal.getsignal(number) or signal.SIG_DFL for number in _STOPPING}

    async def watched() -> T:
        task = asyncio.current_task()
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            stopped_by.append(number)
            if task is not None:
                task.cancel()

        for number in _STOPPING:
            loop.add_signal_handler(number, stop, number)
        return await main

    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            return runner.run(watched())
    except asyncio.CancelledError:
        if not stopped_by:
            raise
        raise StoppedError(stopped_by[0]) from None
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
