"""`_dragoman/search`: finds words in the messages of sessions.

The search index has the messages of most sessions (`delivery/message_index.py`). The journals of the others are read
one after the other, the latest session first, in parts. A thread matches each part. Without an index, which is the case
in a database, all journals are read. Hits are sent as `_dragoman/found`, and the answer to the request says how many
sessions were searched. A viewer has one search at a time, and the next one ends it. Per agent, one search of an owner
and one of a reader run at a time.
"""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from dragoman.bridge.delivery import HistoryIndex, IndexedFile, MessageRun, SearchIndexError
from dragoman.bridge.delivery.message_text import MessageText, MessageTexts, Role
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import GROUPS, ServedSessions
from dragoman.bridge.sessions.labels import group_of
from dragoman.bridge.viewers import Delivery, Viewer, ViewerRequest
from dragoman.errors import DragomanError, ErrorCode, RpcError
from dragoman.text import one_line
from dragoman.wire.message import BAD_JSON

MAX_QUERY_CHARS = 200
MAX_WORDS = 10
MIN_CHARS = 2
"""A single letter is in every message."""

MAX_HITS = 100
MAX_HITS_OF_SESSION = 3
"""The user opens the session to see the rest."""

MAX_READ_BYTES = 512 * 1024 * 1024
"""Bytes read per search, which takes some seconds. The answer says that the search stopped there."""

MAX_AWAITED = 100
"""A search waits until this many changed sessions are in the index. If there are more, it reads their journals."""

CONTEXT_CHARS = 60

_PAGE = 200
"""Candidates that the index returns at a time."""

_log = logging.getLogger("dragoman.bridge")


class _Params(msgspec.Struct, rename="camel"):
    query: str
    search_id: int


class SearchHit(msgspec.Struct, rename="camel"):
    """A message that has all words of a search."""

    session_id: str
    seq: int
    """The first record of the message."""
    role: Role
    before: str
    match: str
    after: str


class WordMatcher:
    """Finds words in messages. Runs in threads."""

    def __init__(self, words: Sequence[str]) -> None:
        self._patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
        self._phrase = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)

    def match(self, session_id: str, message: MessageText) -> SearchHit | None:
        """Return the hit in a message that has all words."""
        text = message.text
        places = [pattern.search(text) for pattern in self._patterns]
        at = self._phrase.search(text) or places[0]
        if at is None or not all(places):
            return None
        before = text[max(0, at.start() - CONTEXT_CHARS) : at.start()]
        after = text[at.end() : at.end() + CONTEXT_CHARS]
        return SearchHit(session_id, message.seq, message.role, _words(before), _words(at[0]), _words(after))


class _JournalMatcher:
    """Finds words in the messages of one session, given its records in order. Runs in threads."""

    def __init__(self, session_id: str, matcher: WordMatcher) -> None:
        self._session_id = session_id
        self._matcher = matcher
        self._texts = MessageTexts()

    def feed(self, runs: Sequence[MessageRun]) -> list[SearchHit]:
        """Add the next records, and return the hits in messages that are now complete."""
        return self._match(self._texts.feed(runs))

    def finish(self) -> list[SearchHit]:
        """Return the hit in the last message, if there is one."""
        return self._match(self._texts.finish())

    def _match(self, messages: Iterator[MessageText]) -> list[SearchHit]:
        hits = (self._matcher.match(self._session_id, message) for message in messages)
        return [hit for hit in hits if hit is not None]


def _words(text: str) -> str:
    """Put a piece of text on one line, and keep the spaces at its ends."""
    inner = one_line(text)
    return f"{' ' * text[:1].isspace()}{inner}{' ' * text[-1:].isspace()}" if inner else ""


class SessionSearch:
    """Serves the searches of viewers in the sessions of one agent."""

    def __init__(self, delivery: Delivery, sessions: ServedSessions) -> None:
        self._delivery = delivery
        self._sessions = sessions
        self._latest: dict[Viewer, ViewerRequest] = {}
        self._reading = {is_reader: asyncio.Semaphore(1) for is_reader in (True, False)}
        self._is_updating = False
        self._problem = ""
        """The last problem of the index, which is logged once."""

    async def open_index(self) -> None:
        """Open the index, and add the sessions that it does not have."""
        histories = self._delivery.histories
        if histories.index is not None:
            histories.index.open(histories.stored)
            await self.update_index()

    async def update_index(self) -> None:
        """Add new messages to the index, unless this is running already."""
        index = self._delivery.histories.index
        if index is None or self._is_updating:
            return
        self._is_updating = True
        try:
            await index.update(self._find_behind(index))
        except SearchIndexError as error:
            self._lose(index, error)
        finally:
            self._is_updating = False

    def close(self) -> None:
        """Close the index."""
        if self._delivery.histories.index is not None:
            self._delivery.histories.index.close()

    async def search(self, request: ViewerRequest) -> Reply:
        """Answer `_dragoman/search`. The search replaces an earlier one of this viewer."""
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_JSON as error:
            problem = f"params: {error}; expected a query and a searchId"
            raise RpcError(ErrorCode.INVALID_PARAMS, problem) from None
        words = params.query.split()
        if len(params.query.strip()) < MIN_CHARS or len(params.query) > MAX_QUERY_CHARS or len(words) > MAX_WORDS:
            expected = f"{MIN_CHARS} to {MAX_QUERY_CHARS} characters, at most {MAX_WORDS} words"
            raise RpcError(ErrorCode.INVALID_PARAMS, {"path": "params.query", "expected": expected})
        self._latest[request.viewer] = request
        try:
            return await self._search(request, words, params.search_id)
        finally:
            if self._is_wanted(request):
                self.viewer_left(request.viewer)

    def viewer_left(self, viewer: Viewer) -> None:
        """End the search of a viewer."""
        self._latest.pop(viewer, None)

    def _is_wanted(self, request: ViewerRequest) -> bool:
        return self._latest.get(request.viewer) is request

    async def _search(self, request: ViewerRequest, words: list[str], search_id: int) -> Reply:
        """Search until all sessions are read, a limit is reached, or the viewer no longer wants the result."""
        viewer, matcher = request.viewer, WordMatcher(words)
        async with self._reading[viewer.read_only]:
            unindexed = await self._search_index(request, matcher, words, search_id)
            if unindexed is None:
                return {"searched": 0, "complete": False}
            searched, hits, read_bytes = unindexed.searched, unindexed.hits, 0
            for session_id in unindexed.session_ids:
                if not self._is_wanted(request) or hits >= MAX_HITS or read_bytes >= MAX_READ_BYTES:
                    return {"searched": searched, "complete": False}
                # A session is read only until it has enough hits. The viewer may send another search at each await.
                journal = _JournalMatcher(session_id, matcher)
                found = 0
                async with aclosing(self._parts(session_id)) as parts:
                    async for runs in parts:
                        read_bytes += sum(len(run.lines) for run in runs)
                        found += self._send(viewer, search_id, await asyncio.to_thread(journal.feed, runs), found)
                        is_enough = found >= MAX_HITS_OF_SESSION or read_bytes >= MAX_READ_BYTES
                        if is_enough or not self._is_wanted(request):
                            break
                if not self._is_wanted(request):
                    return {"searched": searched, "complete": False}
                hits += found + self._send(viewer, search_id, journal.finish(), found)
                searched += 1
        return {"searched": searched, "complete": unindexed.is_complete}

    async def _search_index(
        self, request: ViewerRequest, matcher: WordMatcher, words: list[str], search_id: int
    ) -> "_Unindexed | None":
        """Send the hits in the index. Return the sessions that it does not have, or None if the search was ended."""
        viewer, index = request.viewer, self._delivery.histories.index
        if index is None:
            return _Unindexed(self._sessions_for(viewer))
        try:
            behind = self._find_behind(index)
            if len(behind) <= MAX_AWAITED:
                await index.update(behind)
                behind = []
            left = {file.session_id for file in behind}
            found = await self._find_indexed(index, request, matcher, words, left)
        except SearchIndexError as error:
            self._lose(index, error)
            return _Unindexed(self._sessions_for(viewer))
        if not self._is_wanted(request):
            return None
        if found.hits:
            viewer.send(make_notification("_dragoman/found", {"searchId": search_id, "hits": found.hits}))
        unindexed = [each for each in self._sessions_for(viewer) if each in left] if left else []
        searched = sum(self._sessions.lists.count(viewer).values()) - len(unindexed)
        return _Unindexed(unindexed, searched, len(found.hits), is_complete=found.is_complete)

    async def _find_indexed(
        self, index: HistoryIndex, request: ViewerRequest, matcher: WordMatcher, words: list[str], left: set[str]
    ) -> "_Found":
        """Return the hits in the index, grouped by session, those of the session that changed last first."""
        found: dict[str, list[SearchHit]] = {}
        count, before = 0, None
        while count < MAX_HITS and self._is_wanted(request):
            page = await index.find(words, before, _PAGE)
            wanted = [
                each
                for each in page
                if each.session_id not in left
                and len(found.get(each.session_id, ())) < MAX_HITS_OF_SESSION
                and self._is_listed(request.viewer, each.session_id)
            ]
            texts = await index.read([each.number for each in wanted])
            for each, text in zip(wanted, texts, strict=True):
                hit = matcher.match(each.session_id, MessageText(each.seq, each.role, text))
                of_session = found.setdefault(each.session_id, [])
                if hit is not None and count < MAX_HITS and len(of_session) < MAX_HITS_OF_SESSION:
                    of_session.append(hit)
                    count += 1
            if len(page) < _PAGE:
                break
            before = page[-1].number
        hits = [hit for each in found.values() for hit in sorted(each, key=lambda hit: hit.seq)]
        return _Found(hits, is_complete=count < MAX_HITS)

    def _find_behind(self, index: HistoryIndex) -> list[IndexedFile]:
        opened = [session.history for session in self._sessions.by_id.values()]
        for history in opened:
            history.flush()
        return index.find_behind(opened)

    def _lose(self, index: HistoryIndex, error: SearchIndexError) -> None:
        if str(error) != self._problem:
            self._problem = str(error)
            _log.warning("%s", error)
        index.lost(self._delivery.histories.stored)

    def _is_listed(self, viewer: Viewer, session_id: str) -> bool:
        """Return whether a list shows a session to a viewer."""
        listed = self._sessions.lists.find(session_id)
        if listed is None or not viewer.sees(session_id) or viewer.access.session_id not in (None, session_id):
            return False
        return group_of(self._sessions.lists.label_of(listed)) in GROUPS

    def _sessions_for(self, viewer: Viewer) -> list[str]:
        """Return the sessions that lists show to a viewer, the latest first."""
        return [listed.id for listed in self._sessions.lists.newest(viewer)]

    def _send(self, viewer: Viewer, search_id: int, hits: list[SearchHit], before: int) -> int:
        """Send hits of a session up to the limit, of which `before` were sent. Return how many were sent."""
        sent = hits[: max(0, MAX_HITS_OF_SESSION - before)]
        if sent:
            params: dict[str, Any] = {"searchId": search_id, "hits": sent}
            viewer.send(make_notification("_dragoman/found", params))
        return len(sent)

    async def _parts(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        """Read the records of an open or stored session in parts. Stop at records that cannot be read."""
        session = self._sessions.find(session_id)
        try:
            if session is None:
                async with aclosing(self._delivery.histories.read_stored(session_id)) as parts:
                    async for runs in parts:
                        yield runs
                return
            session.history.flush()
            reached, end = 0, session.history.end
            while reached < end:
                part = await session.history.read(reached, end)
                reached = part.reached
                yield part.runs
        except (OSError, DragomanError):
            return  # the other sessions are still searched


class _Found(msgspec.Struct, frozen=True):
    """The hits in the index."""

    hits: list[SearchHit]
    is_complete: bool


class _Unindexed(msgspec.Struct, frozen=True):
    """The sessions whose journals must be read, and what the index has found in the others."""

    session_ids: list[str]
    searched: int = 0
    hits: int = 0
    is_complete: bool = True
