"""`_dragoman/history`, `_dragoman/settings` and `_dragoman/find`: a session's history, for viewers that read parts.

A viewer that loads a session with `"paged": true` receives no history. It requests the end of the history, then older
parts when the user wants them. The parts have merged updates (`merged_updates.py`):

    session/load, paged ──► the answer has `before`, a cursor at the end        later records follow as usual
    history before it   ──► its last part, and `before` for the next part       null at the beginning
    settings before it  ──► the plan, the usage and so on that older parts left

A part begins with a message of the user if possible, else with another item of the conversation. Only a message of more
than a megabyte is divided.

These requests read the history of the viewer's subscription. So a session of another node is read from the database by
the viewer's own node.
"""

import asyncio
from collections.abc import Generator, Sequence
from contextlib import aclosing, contextmanager
from typing import Annotated, TypeVar

import msgspec
from msgspec import Meta

from dragoman.bridge.delivery import MessageRun, read_cursor
from dragoman.bridge.router.merged_updates import USER_CHUNK, LatestSettings, MergedUpdate, merge_runs
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.router.session_finder import MAX_QUERY_CHARS, SessionFinder
from dragoman.bridge.viewers import Viewer, ViewerRequest, read_history
from dragoman.errors import DragomanError, ErrorCode, RpcError
from dragoman.store.history import ReadableHistory
from dragoman.wire.message import BAD_JSON

HISTORY = "_dragoman/history"
SETTINGS_BEFORE = "_dragoman/settings"
FIND = "_dragoman/find"

PART_BYTES = 64 * 1024
"""The least size of a part, which is several screens."""

MAX_PART_BYTES = 1024 * 1024
"""The size at which a part ends even within a message, or before the record that the viewer wants to reach."""

_FIRST_RECORDS = 256
"""Records that are read first for a part. Each further attempt reads as many as all before."""

_SCANNED_RECORDS = 5_000
"""Records that are read at once to find settings."""


class _HistoryParams(msgspec.Struct, rename="camel"):
    session_id: str
    before: str
    to: Annotated[int, Meta(ge=0)] | None = None


class _SettingsParams(msgspec.Struct, rename="camel"):
    session_id: str
    before: str


class _FindParams(msgspec.Struct, rename="camel"):
    session_id: str
    query: Annotated[str, Meta(min_length=1, max_length=MAX_QUERY_CHARS)]


_Form = TypeVar("_Form", _HistoryParams, _SettingsParams, _FindParams)


class HistoryRequests:
    """Serves the parts of histories that viewers request."""

    def __init__(self) -> None:
        self._finding: dict[Viewer, ViewerRequest] = {}
        """The latest search of each viewer. It ends the one before."""
        self._reading = {is_reader: asyncio.Semaphore(1) for is_reader in (True, False)}
        """One search of an owner and one of a reader run at a time, because each reads a whole history."""

    async def history(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/history`: the part of a history before a cursor."""
        params, history = _read(request, _HistoryParams)
        before = _seq_of(history, params.before)
        with _reading(params.session_id):
            start, entries = await self._read_part(request, history, before, params.to)
        described = [each.describe() for each in entries]
        return {"updates": described, "before": history.cursor(start) if start > 0 else None}

    async def settings(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/settings`: the settings of a session at a cursor."""
        params, history = _read(request, _SettingsParams)
        start = _seq_of(history, params.before)
        found = LatestSettings()
        with _reading(params.session_id):
            while start > 0 and not found.is_complete and not request.viewer.closed.is_set():
                after = max(0, start - _SCANNED_RECORDS)
                await asyncio.to_thread(found.feed, await _records(request, history, after, start))
                start = after
        return {"updates": found.updates}

    async def find(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/find`: the places of a text in a session."""
        params, history = _read(request, _FindParams)
        viewer = request.viewer
        self._finding[viewer] = request
        finder = SessionFinder(params.query)
        try:
            async with self._reading[viewer.read_only]:
                with _reading(params.session_id):
                    parts = read_history(viewer, params.session_id, history, 0, history.end)
                    async with aclosing(parts):
                        async for runs in parts:
                            if self._finding.get(viewer) is not request:
                                break
                            await asyncio.to_thread(finder.feed, runs)
            if self._finding.get(viewer) is not request:
                return {"hits": [], "complete": False}
            hits = await asyncio.to_thread(finder.finish)
        finally:
            if self._finding.get(viewer) is request:
                del self._finding[viewer]
        return {"hits": hits, "complete": finder.is_complete}

    def viewer_left(self, viewer: Viewer) -> None:
        """End the search of a viewer."""
        self._finding.pop(viewer, None)

    async def _read_part(
        self, request: ViewerRequest, history: ReadableHistory, before: int, to: int | None
    ) -> tuple[int, list[MergedUpdate]]:
        """Return the updates before a record, and the record after which they begin."""
        runs: list[MessageRun] = []
        start, count = before, _FIRST_RECORDS
        while start > 0:
            after = max(0, start - count)
            runs = [*await _records(request, history, after, start), *runs]
            start, count = after, before - after
            merged = await asyncio.to_thread(merge_runs, runs)
            if start == 0:
                return 0, merged
            at = _find_start(merged, to)
            if at is not None:
                return merged[at].seq - 1 if at > 0 else start, merged[at:]
        return 0, []


def _find_start(merged: Sequence[MergedUpdate], to: int | None) -> int | None:
    """Return the index at which a part begins, or None if more records are needed.

    The first update may continue an item of the records before. A part begins there only if it would be too long.
    """
    at_item: int | None = None
    size = 0
    for at, each in reversed([*enumerate(merged)]):
        size += each.size
        is_enough = size >= PART_BYTES and (to is None or each.seq <= to)
        if not (is_enough or size >= MAX_PART_BYTES) or not each.begins or at == 0:
            continue
        if each.kind == USER_CHUNK:
            return at
        if at_item is None:
            at_item = at
    # Prefer a message of the user, but do not read much more for it.
    if at_item is not None and size >= 4 * PART_BYTES:
        return at_item
    return 0 if size >= MAX_PART_BYTES else None


async def _records(request: ViewerRequest, history: ReadableHistory, after: int, until: int) -> list[MessageRun]:
    session_id = request.session_id or ""
    async with aclosing(read_history(request.viewer, session_id, history, after, until)) as parts:
        return [run async for runs in parts for run in runs]


def _seq_of(history: ReadableHistory, text: str) -> int:
    """Return the record of a cursor. Raises RpcError."""
    cursor = read_cursor(text)
    if cursor is None or not history.has(cursor):
        problem = "params.before is not a cursor of this history; load the session again"
        raise RpcError(ErrorCode.INVALID_PARAMS, {"path": "params.before", "problem": problem})
    return cursor.seq


def _read(request: ViewerRequest, form: type[_Form]) -> tuple[_Form, ReadableHistory]:
    """Decode the params of a request, and return the history that it names. Raises RpcError."""
    try:
        params = msgspec.json.decode(bytes(request.params) or b"{}", type=form)
    except BAD_JSON as error:
        raise RpcError(ErrorCode.INVALID_PARAMS, f"params: {error}") from None
    subscription = request.viewer.subscription(params.session_id)
    if subscription is None or subscription.history is None:
        problem = f"session {params.session_id} is not open for this viewer; load it first"
        raise RpcError(ErrorCode.RESOURCE_NOT_FOUND, problem)
    return params, subscription.history


@contextmanager
def _reading(session_id: str) -> Generator[None]:
    """Translate the errors of reading a history. Raises RpcError."""
    try:
        yield
    except RpcError:
        raise
    except (OSError, DragomanError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problem = f"the journal of session {session_id} cannot be read: {reason}; try again"
        raise RpcError(ErrorCode.INTERNAL_ERROR, problem) from None
