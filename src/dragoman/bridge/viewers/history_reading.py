"""Reading a part of a session's history for one viewer, apart from the stream of its subscription."""

from collections.abc import AsyncGenerator

from dragoman.bridge.delivery import MessageRun
from dragoman.bridge.viewers.edge import SessionEdge
from dragoman.bridge.viewers.viewer import Viewer
from dragoman.store.history import ReadableHistory

_READ_BYTES = 512 * 1024
"""Bytes read at once from the part of a history that is in memory."""


async def read_history(
    viewer: Viewer, session_id: str, history: ReadableHistory, after: int, until: int
) -> AsyncGenerator[list[MessageRun]]:
    """Yield the records between two in the form of a viewer, without cursors. Raises OSError.

    If records must be translated, the translator reads the ones before from the beginning.
    """
    edge = SessionEdge(viewer, session_id)
    reached = edge.restart(history, after, 0)
    while reached < until:
        limit = min(until, edge.silent_until) if reached < edge.silent_until else until
        is_silent = reached < edge.silent_until
        if reached >= history.tail.start:
            runs, _, reached = history.tail.slice(reached, limit, _READ_BYTES)
        else:
            part = await history.read(reached, min(limit, history.tail.start))
            runs, reached = part.runs, part.reached
        if is_silent:
            edge.read_silently(history, runs)
        else:
            yield edge.adapt(history, runs)
