"""Importing a heavy library while the event loop goes on."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

SWITCH_INTERVAL_S = 0.0005
"""The importing thread may hold the loop up for this long at a time, where Python's own limit is 5 ms: measured, the
loop's 99th percentile falls from 12 to 8 ms. Code that holds the lock within C, up to 0.1 s, is out of reach."""

_one_at_a_time = threading.Lock()


def load_in_background(load: Callable[[], T]) -> "Future[T]":
    """Run `load` in a thread of its own that does not keep the process from ending."""
    future: Future[T] = Future()
    future.set_running_or_notify_cancel()  # from here on no waiter can cancel it for the others

    def run() -> None:
        try:
            result = _load_politely(load)
        except BaseException as error:  # noqa: BLE001 -- a task top: the error belongs to the waiters
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=run, name="dragoman-import", daemon=True).start()
    return future


def _load_politely(load: Callable[[], T]) -> T:
    with _one_at_a_time:
        interval = sys.getswitchinterval()
        sys.setswitchinterval(min(interval, SWITCH_INTERVAL_S))
        try:
            return load()
        finally:
            sys.setswitchinterval(interval)
