"""`_dragoman/search`: words that were said in sessions, found in their journals.

Journals are read one after the other, the latest session first, in parts and in threads. Each part that has a hit is
told at once (`_dragoman/found`), and the answer to the request says how far the search came. A viewer has one search
at a time: the next one ends it. One search reads at a time for each agent.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any, Literal

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import Delivery, MessageRun, Viewer, ViewerRequest
from dragoman.bridge.envelope import make_notification
from dragoman.bridge.registry import SessionRegistry
from dragoman.errors import DragomanError, ErrorCode
from dragoman.text import one_line
from dragoman.wire.message import BAD_JSON

MAX_QUERY_CHARS = 200
MAX_WORDS = 10
MIN_CHARS = 2
"""A single letter is in every message."""

MAX_HITS = 100
MAX_HITS_OF_SESSION = 3
"""One opens a session for the rest."""

MAX_READ_BYTES = 512 * 1024 * 1024
"""For one search: some seconds of reading. The answer says that it stopped there."""

MAX_MESSAGE_CHARS = 1_000_000
"""Of one message; what comes after is not searched."""

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
    """Decode one block, as chunks have it, or a list, as whole messages of version 2 have it."""
    return [_decode_block(content)] if bytes(content)[:1] == b"{" else _decode_many(content)


Role = Literal["user", "agent"]


class SearchHit(msgspec.Struct, rename="camel"):
    """A place where all words of a search are in one message."""

    session_id: str
    seq: int
    """The first record of the message."""
    role: Role
    before: str
    match: str
    after: str


class _Message:
    """A message, whose chunks are records in a row."""

    def __init__(self, role: Role, message_id: str | None, seq: int) -> None:
        self.role: Role = role
        self.message_id = message_id
        self.seq = seq
        self._pieces: list[str] = []
        self._chars = 0

    def goes_on(self, role: Role, message_id: str | None) -> bool:
        return role == self.role and message_id == self.message_id

    def add(self, text: str) -> None:
        if self._chars < MAX_MESSAGE_CHARS:
            self._pieces.append(text)
            self._chars += len(text)

    @property
    def text(self) -> str:
        return "".join(self._pieces)


class MessageMatcher:
    """Finds words in the messages of one session, given its records in order; for threads."""

    def __init__(self, session_id: str, words: Sequence[str]) -> None:
        self._session_id = session_id
        self._patterns = [re.compile(re.escape(word), re.IGNORECASE) for word in words]
        self._phrase = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        self._open: _Message | None = None

    def take(self, runs: Sequence[MessageRun]) -> list[SearchHit]:
        """Take the next records, and return the hits in messages that are whole by now."""
        hits: list[SearchHit] = []
        for run in runs:
            for seq, line in enumerate(run.messages(), run.first):
                hits += self._take_line(seq, line)
        return hits

    def finish(self) -> list[SearchHit]:
        """Return the hit in the last message, if there is one."""
        message, self._open = self._open, None
        return [] if message is None else list(self._match(message))

    def _take_line(self, seq: int, line: bytes) -> list[SearchHit]:
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
        if self._open is None or not self._open.goes_on(role, update.message_id):
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
    """Make one line of a piece of text, which keeps the space at its ends."""
    inner = one_line(text)
    return f"{' ' * text[:1].isspace()}{inner}{' ' * text[-1:].isspace()}" if inner else ""


class SessionSearch:
    """Serves searches of viewers in the sessions of one agent."""

    def __init__(self, delivery: Delivery, registry: SessionRegistry) -> None:
        self._delivery = delivery
        self._registry = registry
        self._latest: dict[Viewer, ViewerRequest] = {}
        self._reading = asyncio.Semaphore(1)

    def search(self, request: ViewerRequest) -> None:
        """Begin a search, which takes the place of an earlier one of this viewer."""
        try:
            params = msgspec.json.decode(request.params, type=_Params)
        except BAD_JSON as error:
            request.refuse(ErrorCode.INVALID_PARAMS, f"params: {error}; expected a query and a searchId")
            return
        words = params.query.split()
        if len(params.query.strip()) < MIN_CHARS or len(params.query) > MAX_QUERY_CHARS or len(words) > MAX_WORDS:
            expected = f"{MIN_CHARS} to {MAX_QUERY_CHARS} characters, at most {MAX_WORDS} words"
            request.refuse(ErrorCode.INVALID_PARAMS, {"path": "params.query", "expected": expected})
            return
        self._latest[request.viewer] = request
        self._delivery.spawn(self._run(request, words, params.search_id))

    def viewer_left(self, viewer: Viewer) -> None:
        """End the search of a viewer."""
        self._latest.pop(viewer, None)

    def _is_wanted(self, request: ViewerRequest) -> bool:
        return self._latest.get(request.viewer) is request

    async def _run(self, request: ViewerRequest, words: list[str], search_id: int) -> None:
        viewer = request.viewer
        searched, hits, read_bytes = 0, 0, 0
        async with self._reading:
            for session_id in self._sessions_for(viewer):
                if not self._is_wanted(request) or hits >= MAX_HITS or read_bytes >= MAX_READ_BYTES:
                    break
                matcher = MessageMatcher(session_id, words)
                found = 0
                async with aclosing(self._parts(session_id)) as parts:
                    async for runs in parts:
                        read_bytes += sum(len(run.lines) for run in runs)
                        found += self._tell(viewer, search_id, await asyncio.to_thread(matcher.take, runs), found)
                        is_enough = found >= MAX_HITS_OF_SESSION or read_bytes >= MAX_READ_BYTES
                        if is_enough or not self._is_wanted(request):
                            break
                hits += found + self._tell(viewer, search_id, matcher.finish(), found)
                searched += 1
            else:
                request.answer({"searched": searched, "complete": True})
        request.answer({"searched": searched, "complete": False})
        if self._is_wanted(request):
            self.viewer_left(viewer)

    def _sessions_for(self, viewer: Viewer) -> list[str]:
        """Give the sessions that lists show to a viewer, the latest first."""
        return [listed.id for listed in self._registry.lists.newest(viewer)]

    def _tell(self, viewer: Viewer, search_id: int, hits: list[SearchHit], before: int) -> int:
        told = hits[: max(0, MAX_HITS_OF_SESSION - before)]
        if told:
            params: dict[str, Any] = {"searchId": search_id, "hits": told}
            viewer.send(make_notification("_dragoman/found", params))
        return len(told)

    async def _parts(self, session_id: str) -> AsyncGenerator[list[MessageRun]]:
        """Read the records of a session, open or not, in parts; records that cannot be read are left out."""
        session = self._registry.find(session_id)
        try:
            if session is None:
                async with aclosing(self._delivery.journals.read_stored(session_id)) as parts:
                    async for runs in parts:
                        yield runs
                return
            session.journal.flush()
            reached, end = 0, session.journal.end
            while reached < end:
                part = await session.journal.read(reached, end, with_cursors=False)
                reached = part.reached
                yield part.runs
        except (OSError, DragomanError):
            return  # the others are still searched
