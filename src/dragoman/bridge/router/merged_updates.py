"""The updates of a session, with fewer of them, for viewers that read a history in parts.

A viewer that reads this form shows the same conversation as one that reads the records:

- Consecutive chunks of one message become one chunk. Consecutive updates of one tool call become one update.
- Of settings, such as the plan and the usage, only the latest in a row is kept. They do not interrupt a message.

An entry names its first record, so that a viewer can find it again, and has the time of its last one.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.bridge.delivery import MessageRun
from dragoman.bridge.envelope import string_of
from dragoman.wire.message import BAD_JSON

USER_CHUNK = "user_message_chunk"
CHUNKS = frozenset({USER_CHUNK, "agent_message_chunk", "agent_thought_chunk"})
TOOLS = frozenset({"tool_call", "tool_call_update"})
SETTINGS = frozenset(
    {"plan", "usage_update", "available_commands_update", "current_mode_update", "config_option_update"}
)
"""Kinds of updates that replace an earlier one of their kind."""

_ENTRY_BYTES = 60
"""The size of an entry in addition to its update."""

_USER_MESSAGE = re.compile(rb'"sessionUpdate"\s*:\s*"user_message')


class _Params(msgspec.Struct):
    update: dict[str, Raw]


class _Notification(msgspec.Struct):
    params: _Params


class _Text(msgspec.Struct, forbid_unknown_fields=True):
    type: Literal["text"]
    text: str


_decode_line = msgspec.json.Decoder(_Notification).decode
_decode_text = msgspec.json.Decoder(_Text).decode
_NULL = b"null"


def read_update(line: bytes) -> dict[str, Raw] | None:
    """Return the fields of an update, or None for any other message."""
    try:
        return _decode_line(line).params.update
    except BAD_JSON:
        return None


class MergedUpdate(msgspec.Struct):
    """One update, or several in one."""

    seq: int
    """The first of its records."""
    time_ms: int
    kind: str
    update: dict[str, Raw]
    size: int
    begins: bool = False
    """Whether an item of the conversation begins here, so that a part of the history can begin here."""
    texts: list[str] | None = None
    """The text of chunks, in pieces. None if other chunks cannot be added."""

    @property
    def message_id(self) -> Raw | None:
        """The id of its message, if it is a chunk of one that has an id."""
        return self.update.get("messageId")

    def describe(self) -> dict[str, Any]:
        """Return the entry of an answer."""
        update: dict[str, Any] = dict(self.update)
        if self.texts is not None and len(self.texts) > 1:
            update["content"] = {"type": "text", "text": "".join(self.texts)}
        return {"seq": self.seq, "time": self.time_ms, "update": update}


class UpdateMerger:
    """Merges the updates of consecutive records."""

    def __init__(self) -> None:
        self._open: MergedUpdate | None = None
        """The latest update that is not a setting. The next one may be merged into it."""
        self._settings: dict[str, MergedUpdate] = {}
        """The settings since then."""
        self._item: object = None
        """What the latest item of the conversation is. A chunk of the same message continues it."""

    def feed(self, runs: Sequence[MessageRun]) -> Iterator[MergedUpdate]:
        """Read the next records, and yield the updates that are complete."""
        for run in runs:
            for seq, line in enumerate(run.messages(), run.first):
                update = read_update(line)
                if update is not None:
                    yield from self._add(seq, run.time_ms, update, len(line))

    def finish(self) -> Iterator[MergedUpdate]:
        """Yield the last updates."""
        if self._open is not None:
            yield self._open
        yield from self._settings.values()
        self._open, self._settings = None, {}

    def _add(self, seq: int, time_ms: int, update: dict[str, Raw], size: int) -> Iterator[MergedUpdate]:
        kind = string_of(update.get("sessionUpdate")) or ""
        made = MergedUpdate(seq, time_ms, kind, update, size + _ENTRY_BYTES)
        if kind in SETTINGS:
            self._settings.pop(kind, None)
            self._settings[kind] = made
            return
        if kind in CHUNKS and kind != USER_CHUNK:
            made.texts = _text_of(update)
        if self._open is not None and _merge(self._open, made):
            # A setting follows the message that it was sent in, so it may not seem to be older.
            for setting in self._settings.values():
                setting.time_ms = max(setting.time_ms, time_ms)
            return
        yield from self.finish()
        made.begins = self._begins_item(made)
        self._open = made

    def _begins_item(self, made: MergedUpdate) -> bool:
        if made.kind in CHUNKS:
            item = made.kind, None if made.message_id is None else bytes(made.message_id)
            is_same, self._item = item == self._item, item
            return not is_same
        if made.kind in {"session_info_update", "tool_call_update"}:
            return False
        self._item = None
        return True


def _text_of(update: dict[str, Raw]) -> list[str] | None:
    """Return the text of a chunk in a list, or None if the chunk has more than a text."""
    if update.keys() - {"sessionUpdate", "content", "messageId"}:
        return None
    try:
        return [_decode_text(update.get("content", Raw(_NULL))).text]
    except BAD_JSON:
        return None


def _merge(last: MergedUpdate, more: MergedUpdate) -> bool:
    """Add an update to the one before it. Return False if it is another message or tool call."""
    if last.kind in TOOLS and more.kind in TOOLS:
        is_same = last.update.get("toolCallId") == more.update.get("toolCallId")
        if not is_same or "_meta" in last.update or "_meta" in more.update or more.kind == "tool_call":
            return False
        given = {name: value for name, value in more.update.items() if bytes(value) != _NULL}
        last.update = {**last.update, **given, "sessionUpdate": last.update["sessionUpdate"]}
        last.size = _ENTRY_BYTES + sum(map(len, map(bytes, last.update.values())))
    elif last.texts is not None and more.texts is not None and last.kind == more.kind:
        if last.message_id != more.message_id:
            return False
        last.texts += more.texts
        last.size += len(more.texts[0])
    else:
        return False
    last.time_ms = max(last.time_ms, more.time_ms)
    return True


def merge_runs(runs: Sequence[MessageRun]) -> list[MergedUpdate]:
    """Return the updates in records. This takes some microseconds per record, so long lists belong in a thread."""
    merger = UpdateMerger()
    return [*merger.feed(runs), *merger.finish()]


class LatestSettings:
    """The settings of a session at some record, found by reading backwards from there."""

    _FACTS = frozenset({"title", "servers"})

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Raw]] = {}
        self._has_later_message = False

    @property
    def is_complete(self) -> bool:
        """Whether no older record can add a setting."""
        return self._found.keys() >= SETTINGS | self._FACTS

    @property
    def updates(self) -> list[dict[str, Raw]]:
        """The updates with the settings."""
        return [update for update in self._found.values() if update]

    def feed(self, runs: Sequence[MessageRun]) -> None:
        """Read the records before the ones that were read."""
        for run in reversed(runs):
            if not _SETTING.search(run.lines):
                self._has_later_message = self._has_later_message or _USER_MESSAGE.search(run.lines) is not None
                continue
            for line in reversed(run.messages()):
                if _USER_MESSAGE.search(line):
                    self._has_later_message = True
                if _SETTING.search(line) and (update := read_update(line)) is not None:
                    self._see(update)

    def _see(self, update: dict[str, Raw]) -> None:
        kind = string_of(update.get("sessionUpdate")) or ""
        if kind == "session_info_update":
            if "title" in update:
                self._found.setdefault("title", {"sessionUpdate": update["sessionUpdate"], "title": update["title"]})
            servers = _decode_meta(update.get("_meta")).servers
            if servers is not UNSET:
                meta = Raw(msgspec.json.encode({"dragoman/mcp": servers}))
                self._found.setdefault("servers", {"sessionUpdate": update["sessionUpdate"], "_meta": meta})
        elif kind in SETTINGS and kind not in self._found:
            # A plan that was completed before the user's last message is over.
            is_over = kind == "plan" and self._has_later_message and _is_completed(update)
            self._found[kind] = {} if is_over else update


_SETTING = re.compile(
    rb'"sessionUpdate"\s*:\s*"(?:' + b"|".join(kind.encode() for kind in sorted(SETTINGS)) + rb"|session_info_update)"
)


class _Meta(msgspec.Struct):
    servers: list[Raw] | UnsetType = msgspec.field(default=UNSET, name="dragoman/mcp")


class _Step(msgspec.Struct):
    status: str = ""


_decode_steps = msgspec.json.Decoder(list[_Step] | None).decode
_meta_decoder = msgspec.json.Decoder(_Meta | None)


def _decode_meta(raw: Raw | None) -> _Meta:
    try:
        return _meta_decoder.decode(raw or _NULL) or _Meta()
    except BAD_JSON:
        return _Meta()


def _is_completed(plan: dict[str, Raw]) -> bool:
    try:
        steps: list[_Step] = _decode_steps(plan.get("entries", Raw(_NULL))) or []
    except BAD_JSON:
        return False
    return all(step.status == "completed" for step in steps)
