"""Libraries that log their traffic: addresses, headers and whole messages, which may hold secrets.

Their loggers belong to the whole process, so their levels are not ours to set. A filter drops the records that a
library makes while it works for dragoman; the records that it makes for others pass.
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
"""The least level of each library at which a record holds nothing that was sent or received."""

_MADE_LATE: Final = ("httpcore2.http2", "httpcore2.proxy", "httpcore2.socks")
"""Loggers that come with a module which is imported in the middle of a request."""

_works_for_us: ContextVar[bool] = ContextVar("works_for_us", default=False)


@contextmanager
def unlogged() -> Generator[None]:
    """Keep the records of these libraries out of the log, within the context and in tasks begun there."""
    _watch_loggers()
    before = _works_for_us.get()
    _works_for_us.set(True)
    try:
        yield
    finally:
        _works_for_us.set(before)  # no token: a generator that is closed by another task has another context


class _LeastLevel(logging.Filter):
    def __init__(self, level: int) -> None:
        super().__init__()
        self._level = level

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level or not _works_for_us.get()


_FILTERS: Final = {library: _LeastLevel(level) for library, level in LEAST_LEVELS.items()}
_watched = 0


def _watch_loggers() -> None:
    """Give the filter to each logger of the libraries: one of a parent does not see the records of its children."""
    global _watched  # noqa: PLW0603 -- loggers are never removed: their number tells whether there are new ones
    existing = logging.root.manager.loggerDict
    if len(existing) == _watched:
        return
    for name in (*existing, *LEAST_LEVELS, *_MADE_LATE):
        found = _FILTERS.get(name.partition(".")[0])
        if found is not None:
            logging.getLogger(name).addFilter(found)
    _watched = len(existing)
