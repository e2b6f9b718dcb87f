"""Finds calls without `await`. `turn.say("x")` only creates a coroutine, so nothing is sent.

`must_await` remembers the coroutines of a method's calls. A coroutine that has not begun at the end of its turn was
forgotten. It is closed, because our report names its line, and Python's own warning would name another one.
"""

import functools
import inspect
import os
import sys
from collections.abc import Callable, Coroutine
from types import CodeType
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from dragoman.errors import DragomanError

MAX_REMEMBERED = 32
"""How many calls are remembered before those that have begun are dropped."""

MAX_WATCHED_CHUNKS = 64
"""How many chunks of a turn are watched. Watching costs as much as sending, which would slow a long answer down.

Python itself reports a later chunk without `await`, on stderr and without its place.
"""

CHUNKS = frozenset({"say", "think"})
"""Methods that a turn may call thousands of times."""


class UnawaitedCallError(DragomanError):
    """A turn called a method without `await`. `Agent.connect` raises this at its end."""

    def __init__(self, calls: list[str]) -> None:
        self.calls = calls
        """The calls, each with its file and line."""
        super().__init__("\n".join(calls))


class UnawaitedCalls:
    """The calls of a turn that may not have begun."""

    def __init__(self) -> None:
        self.chunks = 0
        """How many chunks this turn has sent, as far as they are watched."""
        self._calls: list[tuple[Coroutine[Any, Any, Any], CodeType, int]] = []

    def add(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Remember a call of the function that called our caller."""
        if len(self._calls) >= MAX_REMEMBERED:
            self._calls = [call for call in self._calls if _has_not_begun(call[0])]
        frame = sys._getframe(2)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] -- inspect.stack reads the source
        self._calls.append((coroutine, frame.f_code, frame.f_lineno))

    def pop_forgotten(self) -> list[str]:
        """Close and forget all calls. Return a sentence for each that has not begun."""
        forgotten = [call for call in self._calls if _has_not_begun(call[0])]
        self._calls = []
        self.chunks = 0
        for coroutine, _, _ in forgotten:
            coroutine.close()
        return [_describe(*call) for call in forgotten]


class HasUnawaitedCalls(Protocol):
    """An object whose methods have `must_await`."""

    @property
    def unawaited(self) -> UnawaitedCalls:
        """The calls of the turn."""
        ...


S = TypeVar("S", bound=HasUnawaitedCalls)
P = ParamSpec("P")
R = TypeVar("R")


def must_await(
    method: Callable[Concatenate[S, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, R]]:
    """Report calls of a coroutine method that are not awaited."""

    @functools.wraps(method)
    def call(self: S, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine = method(self, *args, **kwargs)
        self.unawaited.add(coroutine)
        return coroutine

    @functools.wraps(method)
    def call_for_chunk(self: S, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        coroutine = method(self, *args, **kwargs)
        if (unawaited := self.unawaited).chunks < MAX_WATCHED_CHUNKS:
            unawaited.chunks += 1
            unawaited.add(coroutine)
        return coroutine

    return call_for_chunk if method.__name__ in CHUNKS else call


def _has_not_begun(coroutine: Coroutine[Any, Any, Any]) -> bool:
    return inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED


def _describe(coroutine: Coroutine[Any, Any, Any], caller: CodeType, line: int) -> str:
    place = f"{os.path.basename(caller.co_filename)}:{line}"  # noqa: PTH119 -- a name of Python's, not a path of ours
    return f"{place}: {coroutine.__qualname__}() was called without await, so it did nothing; write `await` before it"
