"""Finds a text in one session: in its messages, thoughts, tool calls and notices.

Each place is a hit. It names the first record of its item and counts the places within the item, so that a viewer can
show it. White space in the query matches any white space.
"""

import re
from collections.abc import Iterator, Sequence
from operator import itemgetter

import msgspec
from msgspec import Raw

from dragoman.bridge.delivery import MessageRun
from dragoman.bridge.envelope import parse_list, string_of
from dragoman.bridge.router.merged_updates import CHUNKS, TOOLS, MergedUpdate, UpdateMerger
from dragoman.text import one_line
from dragoman.wire.message import BAD_JSON

MAX_QUERY_CHARS = 200
MAX_HITS = 1_000
CONTEXT_CHARS = 40

_ROLES = {"user_message_chunk": "user", "agent_message_chunk": "agent", "agent_thought_chunk": "thought"}


class FoundPlace(msgspec.Struct):
    """A place of the text in an item of the conversation."""

    seq: int
    """The first record of the item."""
    nth: int
    """The number of places in the item before this one."""
    role: str
    before: str
    match: str
    after: str


class _Item:
    def __init__(self, seq: int, role: str) -> None:
        self.seq = seq
        self.role = role
        self.parts: dict[str, list[str]] = {}

    def add(self, text: str, part: str = "") -> None:
        self.parts.setdefault(part, []).append(text)

    def replace(self, text: str, part: str) -> None:
        self.parts[part] = [text]

    @property
    def text(self) -> str:
        return "\n".join("".join(pieces) for pieces in self.parts.values())


class SessionFinder:
    """Finds a text in the records of one session, given in order. Runs in threads."""

    def __init__(self, query: str) -> None:
        words = query.split()
        self._pattern = re.compile(r"\s+".join(map(re.escape, words)) if words else re.escape(query), re.IGNORECASE)
        self._merger = UpdateMerger()
        self._message: _Item | None = None
        self._message_key: object = None
        self._others: dict[object, _Item] = {}
        """Tool calls and other items with an id, which may change until the end."""
        self._hits: list[tuple[int, int, _Item, re.Match[str]]] = []
        self.is_complete = True
        """Whether all places are hits. If there are too many, the latest are kept."""

    def feed(self, runs: Sequence[MessageRun]) -> None:
        """Read the next records."""
        for each in self._merger.feed(runs):
            self._see(each)

    def finish(self) -> list[FoundPlace]:
        """Return the latest hits, in the order of the conversation."""
        for each in self._merger.finish():
            self._see(each)
        self._end_message()
        for item in self._others.values():
            self._match(item)
        self._trim()
        return [_describe(nth, item, found) for _, nth, item, found in self._hits]

    def _see(self, each: MergedUpdate) -> None:
        update = each.update
        if each.kind in CHUNKS:
            key = each.kind, None if each.message_id is None else bytes(each.message_id)
            if key != self._message_key or each.begins or self._message is None:
                self._end_message()
                self._message, self._message_key = _Item(each.seq, _ROLES[each.kind]), key
            self._message.add("".join(each.texts) if each.texts is not None else "".join(_texts_of(update)))
        elif each.kind in TOOLS:
            self._see_tool(each)
        elif each.kind == "notice":
            item = _Item(each.seq, "notice")
            item.add(string_of(update.get("title")) or "", "title")
            item.add(string_of(update.get("description")) or "", "description")
            self._match(item)
        elif (id_ := update.get("compactionId") or update.get("messageId")) is not None:
            family = each.kind.partition("_")[0]
            item = self._others.setdefault((family, bytes(id_)), _Item(each.seq, family))
            item.add("".join(_texts_of(update)))

    def _see_tool(self, each: MergedUpdate) -> None:
        update = each.update
        item = self._others.setdefault(("tool", bytes(update.get("toolCallId", Raw(b"null")))), _Item(each.seq, "tool"))
        title = string_of(update.get("title"))
        item.replace(title if title is not None else "".join(item.parts.get("title", [])), "title")
        if bytes(update.get("content", Raw(b"null"))) != b"null":
            item.replace("\n".join(_texts_of(update)), "content")
        output = _decode_meta(update.get("_meta")).terminal_output
        if output is not None:
            item.add(output.data, f"terminal {output.terminal_id}")

    def _end_message(self) -> None:
        message, self._message = self._message, None
        if message is not None:
            self._match(message)

    def _match(self, item: _Item) -> None:
        for nth, found in enumerate(self._pattern.finditer(item.text)):
            self._hits.append((item.seq, nth, item, found))
            if len(self._hits) >= 2 * MAX_HITS:
                self._trim()

    def _trim(self) -> None:
        self._hits.sort(key=itemgetter(0, 1))
        if len(self._hits) > MAX_HITS:
            del self._hits[:-MAX_HITS]
            self.is_complete = False


def _describe(nth: int, item: _Item, found: "re.Match[str]") -> FoundPlace:
    text, start, end = found.string, found.start(), found.end()
    before, after = text[max(0, start - CONTEXT_CHARS) : start], text[end : end + CONTEXT_CHARS]
    return FoundPlace(item.seq, nth, item.role, _line(before), _line(found[0]), _line(after))


class _Output(msgspec.Struct):
    data: str = ""
    terminal_id: str = ""


class _Meta(msgspec.Struct):
    terminal_output: _Output | None = None


class _Content(msgspec.Struct, rename="camel"):
    """A content block, or the content of a tool call."""

    text: str = ""
    content: Raw = Raw(b"null")
    old_text: str | None = None
    new_text: str | None = None


_meta_decoder = msgspec.json.Decoder(_Meta | None)
_decode_content = msgspec.json.Decoder(_Content).decode


def _decode_meta(raw: Raw | None) -> _Meta:
    try:
        return _meta_decoder.decode(raw or b"null") or _Meta()
    except BAD_JSON:
        return _Meta()


def _texts_of(update: dict[str, Raw]) -> Iterator[str]:
    """Yield the texts in the content and the summary of an update."""
    for raw in (update.get("content"), update.get("summary")):
        if raw is not None:
            yield from _texts_in(raw)


def _texts_in(raw: Raw) -> Iterator[str]:
    for block in parse_list(raw) if bytes(raw)[:1] == b"[" else [raw]:
        try:
            content = _decode_content(block)
        except BAD_JSON:
            continue
        yield from filter(None, (content.text, content.old_text, content.new_text))
        if bytes(content.content) != b"null":
            yield from _texts_in(content.content)


def _line(text: str) -> str:
    """Put a piece of text on one line, and keep the spaces at its ends."""
    inner = one_line(text)
    return f"{' ' * text[:1].isspace()}{inner}{' ' * text[-1:].isspace()}" if inner else ""
