"""`_dragoman/search`: finds words in the messages of sessions by reading their journals.

Journals are read one after the other, the latest session first, in parts. A thread matches each part. Hits are sent at
once as `_dragoman/found`, and the answer to the request says how many sessions were searched. A viewer has one search
at a time, and the next one ends it. Per agent, one search of an owner and one of a reader run at a time.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import MessageRun
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.router.reply import Reply
from dragoman.bridge.sessions import ServedSessions
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

MAX_MESSAGE_CHARS = 1_000_000
"""Characters searched per message."""

CONTEXT_CHARS = 60

_MESSAGE = re.compile(rb'"sessionUpdate": ?"(user|agent)_message(?:_chunk)?"')


class _Params(msgspec.Struct, rename="camel"):
    query: str
    search_id: int


class _Update(msgspec.Struct, rename="camel"):
    content: Raw = Raw(b"null")
    message_id: str | None = None


class _UpdateParams(msgspec.Struct):
    update: _Update


class _Notification(msgspec.Struct):
    params: _UpdateParams


class _Block(msgspec.Struct):
    text: str = ""


_decode_line = msgspec.json.Decoder(_Notification).decode
_decode_block = msgspec.json.Decoder(_Block).decode
_decode_many = msgspec.json.Decoder(list[_Block] | None).decode


def _decode_blocks(content: Raw) -> list[_Block] | None:
    """Decode the content of a chunk, which is one block, or of a whole message of version 2, which is a list."""
    return [_decode_block(content)] if bytes(content)[:1] == b"{" else _decode_many(content)


Role = Literal["user", "agent"]


class SearchHit(msgspec.Struct, rename="camel"):
    """A message that has all words of a search."""

    session_id: str
    seq: int
    """The first record of the message."""
    role: Role
    before: str
    match: str
    after: str


class _Message:
    """A message, collected from chunks in consecutive records."""

    def __init__(self, role: Role, message_id: str | None, seq: int) -> None:
        self.role: Role = role
        self.message_id = message_id
        self.seq = seq
        self._pieces: list[str] = []
        self._chars = 0

    def has_chunk(self, role: Role, message_id: str | None) -> bool:
        return role == self.role and message_id == self.message_id

    def add(self, text: str) -> None:
        if self._chars < MAX_MESSAGE_CHARS:
            self._pieces.append(text)
            self._chars += len(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)


class MessageMatcher:
    """Finds words in the messages of one session, given its records in order. Runs in threads."""

    def __init__(self, session_id: str, words: Sequence[str]) -> None:
        self._session_id = session_id
        self._patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
        self._phrase = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        self._open: _Message | None = None

    def feed(self, runs: Sequence[MessageRun]) -> list[SearchHit]:
        """Add the next records, and return the hits in messages that are now complete."""
        hits: list[SearchHit] = []
        for run in runs:
            for seq, line in enumerate(run.messages(), run.first):
                hits += self._feed_line(seq, line)
        return hits

    def finish(self) -> list[SearchHit]:
        """Return the hit in the last message, if there is one."""
        message, self._open = self._open, None
        return [] if message is None else list(self._match(message))

    def _feed_line(self, seq: int, line: bytes) -> list[SearchHit]:
        kind = _MESSAGE.search(line)
        if kind is None:
            return self.finish()
        role: Role = "user" if kind[1] == b"user" else "agent"
        try:
            update = _decode_line(line).params.update
            content = _decode_blocks(update.content)
        except BAD_JSON:
            return self.finish()
        found: list[SearchHit] = []
        if self._open is None or not self._open.has_chunk(role, update.message_id):
            found = self.finish()
            self._open = _Message(role, update.message_id, seq)
        for block in content or []:
            self._open.add(block.text)
        return found

    def _match(self, message: _Message) -> Iterator[SearchHit]:
        text = message.text
        places = [pattern.search(text) for pattern in self._patterns]
        at = self._phrase.search(text) or places[0]
        if at is None or not all(places):
            return
        before = text[max(0, at.start() - CONTEXT_CHARS) : at.start()]
        after = text[at.end() : at.end() + CONTEXT_CHARS]
        yield SearchHit(self._session_id, message.seq, message.role, _words(before), _words(at[0]), _words(after))


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
        viewer = request.viewer
        searched, hits, read_bytes = 0, 0, 0
        async with self._reading[viewer.read_only]:
            for session_id in self._sessions_for(viewer):
                if not self._is_wanted(request) or hits >= MAX_HITS or read_bytes >= MAX_READ_BYTES:
                    return {"searched": searched, "complete": False}
                # A session is read only until it has enough hits. The viewer may send another search at each await.
                matcher = MessageMatcher(session_id, words)
                found = 0
                async with aclosing(self._parts(session_id)) as parts:
                    async for runs in parts:
                        read_bytes += sum(len(run.lines) for run in runs)
                        found += self._send(viewer, search_id, await asyncio.to_thread(matcher.feed, runs), found)
                        is_enough = found >= MAX_HITS_OF_SESSION or read_bytes >= MAX_READ_BYTES
                        if is_enough or not self._is_wanted(request):
                            break
                if not self._is_wanted(request):
                    return {"searched": searched, "complete": False}
                hits += found + self._send(viewer, search_id, matcher.finish(), found)
                searched += 1
        return {"searched": searched, "complete": True}

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
