"""Drops log records of libraries about their traffic: addresses, headers and messages, which may contain secrets.

The loggers of a library belong to the whole process, so we must not change their levels. A filter drops the records
that a library creates while it works for dragoman. Other records pass.
"""

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LEAST_LEVELS: Final = {
    **dict.fromkeys(("anthropic", "google_genai", "groq", "httpcore", "httpcore2", "httpx", "httpx2"), logging.WARNING),
    "openai": logging.WARNING,
    "mcp": logging.CRITICAL + 1,
}
"""The lowest level per library whose records contain nothing that was sent or received."""

_IMPORTED_LATE: Final = ("httpcore2.http2", "httpcore2.proxy", "httpcore2.socks")
"""Loggers of modules that are imported in the middle of a request."""

_works_for_us: ContextVar[bool] = ContextVar("works_for_us", default=False)


@contextmanager
def unlogged() -> Generator[None]:
    """Drop the records of these libraries within the context, and in tasks that start there."""
    _watch_loggers()
    before = _works_for_us.get()
    _works_for_us.set(True)
    try:
        yield
    finally:
        _works_for_us.set(before)  # without a token, because another task may close the generator in its own context


class _LeastLevel(logging.Filter):
    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level or not _works_for_us.get()


_FILTERS: Final = {library: _LeastLevel(level) for library, level in LEAST_LEVELS.items()}
_watched = 0


def _watch_loggers() -> None:
    """Add the filter to each logger of the libraries, because a parent's filter does not see its children's records."""
    global _watched  # noqa: PLW0603 -- loggers are never removed, so a larger number means new ones
    existing = logging.root.manager.loggerDict
    if len(existing) == _watched:
        return
    for name in (*existing, *LEAST_LEVELS, *_IMPORTED_LATE):
        found = _FILTERS.get(name.partition(".")[0])
        if found is not None:
            logging.getLogger(name).addFilter(found)
    _watched = len(existing)
