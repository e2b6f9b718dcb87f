"""Imports a heavy library in a thread while the event loop runs."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

SWITCH_INTERVAL_S = 0.0005
"""How long the importing thread may block the event loop at a time. Python's default is 5 ms. The 99th percentile of
the loop's delay falls from 12 to 8 ms. C code that holds the lock, for up to 0.1 s, is not affected."""

_one_at_a_time = threading.Lock()


def load_in_background(load: Callable[[], T]) -> "Future[T]":
    """Run `load` in a separate daemon thread, which does not prevent the process from ending."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # after this, no waiter can cancel it for the others

    def run() -> None:
        try:
            result = _load_with_short_turns(load)
        except BaseException as error:  # noqa: BLE001 -- thread boundary: the waiters receive the error
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="dragoman-import", daemon=True).start()
    return future


def _load_with_short_turns(load: Callable[[], T]) -> T:
    with _one_at_a_time:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_INTERVAL_S))
        try:
            return load()
        finally:
            sys.setswitchinterval(interval)
