"""Tool calls: a `tool_call` and its updates in version 1, upserts and chunks of content in version 2.

For version 2, each field is translated separately. For version 1, state is needed: which calls were announced, and
their content so far, because a chunk appends in version 2 and version 1 can only replace.

**Content.** The content is not sent again for each chunk. It is sent when an eighth of it is new, with each update of
the call, and at the end of the turn.

**Terminals.** A version 2 terminal belongs to the agent, and a version 1 client cannot show it. Its output is shown as
text: the last part of it, when an eighth of that part is new, when the command ends, and with each update of the call.
The content and terminals of calls that ended long ago are dropped. For the commands of a version 1 agent see
`terminal`.
"""

import base64
import binascii
from typing import Any

import msgspec

from dragoman.protocol.translate.content import block_to_v1, block_to_v2
from dragoman.protocol.translate.diff import diff_to_v1, diff_to_v2, is_part
from dragoman.protocol.translate.envelope import (
    OF_V1,
    OF_V2,
    Json,
    Object,
    as_object,
    carry,
    objects_in,
    restore,
    split_carried,
    without,
)
from dragoman.protocol.translate.terminal import terminal_of
from dragoman.text.fence import fenced

MAX_SHOWN_BYTES = 32 * 1024
"""Maximum number of bytes of a terminal's output that a version 1 client is shown."""
SHOWN_AGAIN_BYTES = MAX_SHOWN_BYTES // 8
MIN_SHOWN_BYTES = 256
"""Less new content than this is not worth sending everything again."""
MAX_ENDED_CALLS = 64
"""Number of ended calls whose content is kept, because an agent may still add to it."""

KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
STATUSES = {"paused": "in_progress", "cancelled": "failed"}
"""Statuses that only version 2 has, with the nearest version 1 status."""
_ENDS = frozenset({"completed", "failed", "cancelled"})
_SHARED_STATUSES = frozenset({"pending", "in_progress", "completed", "failed"})
_CLEARED: Object = {"kind": "other", "status": "pending", "content": [], "locations": [], "title": ""}
"""The version 1 values that correspond to null in version 2."""


def call_to_v2(call: Object) -> Object:
    """Return a tool call or its update as in version 2. In version 1, null leaves a field unchanged."""
    translated = restore({name: each for name, each in call.items() if each is not None}, OF_V2)
    if isinstance(translated.get("content"), list):
        translated["content"] = content_to_v2(translated["content"])
    return translated


def content_to_v2(content: Json) -> list[Object]:
    """Return the content of a version 1 tool call as version 2 content."""
    return [_item_to_v2(each) for each in objects_in(content) if not is_part(each)]


def _item_to_v2(item: Object) -> Object:
    carried = as_object(as_object(item.get("_meta")).get(OF_V2))
    if "item" in carried:
        return as_object(carried["item"])
    if terminal := terminal_of(item):
        return {"type": "terminal", "terminalId": terminal["terminalId"]}
    if item.get("type") == "diff" or "diff" in carried:
        return diff_to_v2(item)
    if item.get("type") == "content":
        return {**item, "content": block_to_v2(as_object(item.get("content")))}
    return carry(item, OF_V1, {"isOfClient": True}) if item.get("type") == "terminal" else item


class _TerminalText(msgspec.Struct):
    """The end of a terminal's output, with the command and its exit."""

    command: str = ""
    tail: bytes = b""
    is_cut: bool = False
    unseen_bytes: int = 0
    exit_text: str = ""

    def append(self, data: bytes) -> None:
        self.tail += data
        self.unseen_bytes += len(data)
        if len(self.tail) > MAX_SHOWN_BYTES:
            self.tail, self.is_cut = self.tail[-MAX_SHOWN_BYTES:], True

    def as_text(self) -> str:
        head = f"$ {self.command}\n" if self.command else ""
        cut = "…\n" if self.is_cut else ""
        return fenced(head + cut + self.tail.decode(errors="replace")) + self.exit_text


class _KnownCall(msgspec.Struct):
    """A tool call that a version 1 client knows, with its version 2 content."""

    content: list[Object]
    size: int = 0
    """The size in bytes of its content chunks."""
    unseen_bytes: int = 0

    @property
    def terminals(self) -> set[str]:
        """The ids of terminals in the content."""
        return {str(item.get("terminalId")) for item in self.content if item.get("type") == "terminal"}


class ToolCallsForV1:
    """The tool calls and terminals of one session for a version 1 client."""

    def __init__(self) -> None:
        self._announced: set[str] = set()
        self._calls: dict[str, _KnownCall] = {}
        """The running calls, and the calls that ended last."""
        self._ended: dict[str, None] = {}
        self._unseen: set[str] = set()
        """Calls with content that was not sent to the client yet."""
        self._holders: dict[str, dict[str, None]] = {}
        """The calls that show each terminal."""
        self._terminals: dict[str, _TerminalText] = {}

    def upsert(self, call: Object) -> Object:
        """Return the session update for a version 2 upsert. The first one announces the call."""
        fields = self.fields(call)
        call_id = str(call.get("toolCallId"))
        if call_id in self._unseen and "content" not in fields:
            fields = {**fields, "content": self._show_all(call_id)}
        is_announced = call_id in self._announced
        self._announced.add(call_id)
        if call.get("status") in _ENDS:
            self._record_end(call_id)
        if is_announced:
            return {"sessionUpdate": "tool_call_update", **fields}
        title = fields.get("title") or fields.get("name") or fields["toolCallId"]
        translated = {"sessionUpdate": "tool_call", **fields, "title": title}
        return translated if fields.get("title") else carry(translated, OF_V2, {"title": call.get("title")})

    def append(self, chunk: Object) -> list[Object]:
        """Return the session updates for a content chunk, often none."""
        call_id = str(chunk.get("toolCallId"))
        call = self._call(chunk)
        item = as_object(chunk.get("content"))
        call.content.append(item)
        self._add_terminals(call_id, [item])
        size = len(msgspec.json.encode(item))
        is_first = not call.size
        call.size += size
        call.unseen_bytes += size
        self._unseen.add(call_id)
        is_little = call.unseen_bytes < max(MIN_SHOWN_BYTES, call.size // 8)
        if is_little and not is_first and "_meta" not in chunk and call_id in self._announced:
            return []
        translated = self.upsert({"toolCallId": chunk.get("toolCallId")})
        return [translated | ({"_meta": chunk["_meta"]} if chunk.get("_meta") else {})]

    def show_unseen(self) -> list[Object]:
        """Return session updates with the content that was not sent to the client yet."""
        return [
            {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": self._show_all(call_id)}
            for call_id in sorted(self._unseen)
        ]

    def fields(self, call: Object) -> Object:
        """Return the fields of an upsert as version 1 fields, and remember its content."""
        call = restore(call, OF_V1)
        translated: Object = {}
        carried: Object = {}
        for name, value in without(call, "sessionUpdate").items():
            converted, kept = _field_to_v1(name, value)
            translated |= converted
            carried |= kept
        if "content" in call:
            known, call_id = self._call(call), str(call.get("toolCallId"))
            self._release_terminals(call_id)
            known.content = objects_in(call["content"])
            self._add_terminals(call_id, known.content)
            translated["content"] = self._show_all(call_id)
        return carry(translated, OF_V2, carried)

    def update_terminal(self, terminal: Object) -> list[Object]:
        """Apply an update of a terminal. Return the session updates that show it."""
        shown = self._terminals.setdefault(str(terminal.get("terminalId")), _TerminalText())
        if "command" in terminal:
            shown.command = str(terminal["command"] or "")
        if "output" in terminal:
            shown.tail, shown.is_cut = b"", False
            shown.append(_bytes_of(as_object(terminal["output"]).get("data")))
        if "exitStatus" in terminal:
            shown.exit_text = _exit_text(as_object(terminal["exitStatus"]))
        return self._show(str(terminal.get("terminalId")))

    def append_output(self, chunk: Object) -> list[Object]:
        """Append a chunk to a terminal's output. Return the session updates that show it, often none."""
        shown = self._terminals.setdefault(str(chunk.get("terminalId")), _TerminalText())
        shown.append(_bytes_of(chunk.get("data")))
        if shown.unseen_bytes < min(SHOWN_AGAIN_BYTES, max(256, len(shown.tail) // 8)):
            return []
        return self._show(str(chunk.get("terminalId")))

    def _show(self, terminal_id: str) -> list[Object]:
        return [
            {"sessionUpdate": "tool_call_update", "toolCallId": call_id, "content": self._show_all(call_id)}
            for call_id in self._holders.get(terminal_id, ())
            if call_id in self._announced
        ]

    def _call(self, call: Object) -> _KnownCall:
        return self._calls.setdefault(str(call.get("toolCallId")), _KnownCall([]))

    def _add_terminals(self, call_id: str, content: list[Object]) -> None:
        for item in content:
            if item.get("type") == "terminal":
                self._holders.setdefault(str(item.get("terminalId")), {})[call_id] = None

    def _release_terminals(self, call_id: str) -> None:
        """Remove a call from the calls that show its terminals."""
        for terminal_id in self._calls[call_id].terminals:
            holders = self._holders.get(terminal_id, {})
            holders.pop(call_id, None)
            if not holders:
                self._holders.pop(terminal_id, None)

    def _record_end(self, call_id: str) -> None:
        self._ended.pop(call_id, None)
        self._ended[call_id] = None
        while len(self._ended) > MAX_ENDED_CALLS:
            oldest = next(iter(self._ended))
            del self._ended[oldest]
            if oldest in self._calls:
                terminals = self._calls[oldest].terminals
                self._release_terminals(oldest)
                del self._calls[oldest]
                for terminal_id in terminals - self._holders.keys():
                    self._terminals.pop(terminal_id, None)

    def _show_all(self, call_id: str) -> list[Object]:
        self._unseen.discard(call_id)
        call = self._calls[call_id]
        call.unseen_bytes = 0
        return self._content_to_v1(call.content)

    def _content_to_v1(self, content: list[Object]) -> list[Object]:
        return [translated for item in content for translated in self._item_to_v1(item)]

    def _item_to_v1(self, item: Object) -> list[Object]:
        kind = item.get("type")
        bare, carried = split_carried(item, OF_V1)
        if "isOfClient" in carried:
            return [bare]
        if kind == "content":
            return [{**item, "content": block_to_v1(as_object(item.get("content")))}]
        if kind == "diff":
            return diff_to_v1(item)
        if kind == "terminal":
            shown = self._terminals.setdefault(str(item.get("terminalId")), _TerminalText())
            shown.unseen_bytes = 0
            text = shown.as_text()
        else:
            text = msgspec.json.encode(item).decode()
        return [carry({"type": "content", "content": {"type": "text", "text": text}}, OF_V2, {"item": item})]


def _field_to_v1(name: str, value: Json) -> tuple[Object, Object]:
    """Return a version 1 field, and the value that must be carried with it."""
    if name in _CLEARED and value is None:
        return {name: _CLEARED[name]}, {name: None}
    if name in ("name", "rawInput", "rawOutput", "_meta") and value is None:
        return {}, {name: None}
    if name == "capabilities":
        return {}, {name: value}
    if name == "kind" and value not in KINDS:
        return {name: "other"}, {name: value}
    if name == "status" and value not in _SHARED_STATUSES:
        return {name: STATUSES.get(value, "in_progress")}, {name: value}
    return {name: value}, {}


def _bytes_of(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except binascii.Error:
        return b""


def _exit_text(status: Object) -> str:
    if status.get("signal"):
        return f"\n(ended by {status['signal']})"
    return f"\n(exit code {status['exitCode']})" if status.get("exitCode") is not None else ""
