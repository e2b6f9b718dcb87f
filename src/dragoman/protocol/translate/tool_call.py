"""Tool calls: a `tool_call` and updates of it in version 1, upserts and chunks of content in version 2.

To version 2 all is said field by field. To version 1 state is needed: which calls were announced, and the content so
far, because a chunk appends there and version 1 can only replace. A terminal of version 2 belongs to the agent and a
version 1 client has none to show, so that its output is shown as text: the last part of it, and not at each chunk, but
when an eighth of that part is new, when the command ends, and with each update of the call. See `terminal` for the
commands of a version 1 agent.
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
    take_carried,
    without,
)
from dragoman.protocol.translate.terminal import terminal_of
from dragoman.text.fence import fenced

MAX_SHOWN_BYTES = 32 * 1024
"""The part of a terminal's output that a version 1 client is shown."""
SHOWN_AGAIN_BYTES = MAX_SHOWN_BYTES // 8

KINDS = frozenset({"read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"})
STATUSES = {"paused": "in_progress", "cancelled": "failed"}
"""Statuses of version 2 alone, with the nearest of version 1."""
_SHARED_STATUSES = frozenset({"pending", "in_progress", "completed", "failed"})
_CLEARED: Object = {"kind": "other", "status": "pending", "content": [], "locations": [], "title": ""}
"""The values of version 1 that say what null says in version 2."""


def call_to_v2(call: Object) -> Object:
    """Return a tool call, or an update of one, as version 2 has it; null leaves a field as it is in version 1."""
    made = restore({name: each for name, each in call.items() if each is not None}, OF_V2)
    if isinstance(made.get("content"), list):
        made["content"] = content_to_v2(made["content"])
    return made


def content_to_v2(content: Json) -> list[Object]:
    """Return the content of a tool call of version 1 as that of version 2."""
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
    exit_words: str = ""

    def append(self, data: bytes) -> None:
        self.tail += data
        self.unseen_bytes += len(data)
        if len(self.tail) > MAX_SHOWN_BYTES:
            self.tail, self.is_cut = self.tail[-MAX_SHOWN_BYTES:], True

    def words(self) -> str:
        head = f"$ {self.command}\n" if self.command else ""
        cut = "…\n" if self.is_cut else ""
        return fenced(head + cut + self.tail.decode(errors="replace")) + self.exit_words


class _KnownCall(msgspec.Struct):
    """A tool call that a version 1 client knows of: its content as version 2 has it."""

    content: list[Object]
    is_announced: bool = False


class ToolCallsForV1:
    """The tool calls and terminals of one session, told to a version 1 client."""

    def __init__(self) -> None:
        self._calls: dict[str, _KnownCall] = {}
        self._terminals: dict[str, _TerminalText] = {}

    def upsert(self, call: Object) -> Object:
        """Return the session update for an upsert of version 2: the first of a call announces it."""
        fields = self.fields(call)
        known = self._call(call)
        if known.is_announced:
            return {"sessionUpdate": "tool_call_update", **fields}
        known.is_announced = True
        title = fields.get("title") or fields.get("name") or fields["toolCallId"]
        made = {"sessionUpdate": "tool_call", **fields, "title": title}
        return made if fields.get("title") else carry(made, OF_V2, {"title": call.get("title")})

    def append(self, chunk: Object) -> Object:
        """Return the session update for a chunk of content."""
        call = {"toolCallId": chunk.get("toolCallId")}
        self._call(call).content.append(as_object(chunk.get("content")))
        content = self._content_to_v1(self._call(call).content)
        made = self.upsert(call)
        return {**made, "content": content} | ({"_meta": chunk["_meta"]} if chunk.get("_meta") else {})

    def fields(self, call: Object) -> Object:
        """Return the fields of an upsert as those of an update of version 1, and remember its content."""
        call = restore(call, OF_V1)
        made: Object = {}
        carried: Object = {}
        for name, value in without(call, "sessionUpdate").items():
            told, kept = _field_to_v1(name, value)
            made |= told
            carried |= kept
        if "content" in call:
            self._call(call).content = objects_in(call["content"])
            made["content"] = self._content_to_v1(self._call(call).content)
        return carry(made, OF_V2, carried)

    def update_terminal(self, terminal: Object) -> list[Object]:
        """Take an update of a terminal and return the session updates that show it."""
        shown = self._terminals.setdefault(str(terminal.get("terminalId")), _TerminalText())
        if "command" in terminal:
            shown.command = str(terminal["command"] or "")
        if "output" in terminal:
            shown.tail, shown.is_cut = b"", False
            shown.append(_bytes_of(as_object(terminal["output"]).get("data")))
        if "exitStatus" in terminal:
            shown.exit_words = _exit_words(as_object(terminal["exitStatus"]))
        return self._show(str(terminal.get("terminalId")))

    def append_output(self, chunk: Object) -> list[Object]:
        """Take a chunk of a terminal's output and return the session updates that show it, often none."""
        shown = self._terminals.setdefault(str(chunk.get("terminalId")), _TerminalText())
        shown.append(_bytes_of(chunk.get("data")))
        if shown.unseen_bytes < min(SHOWN_AGAIN_BYTES, max(256, len(shown.tail) // 8)):
            return []
        return self._show(str(chunk.get("terminalId")))

    def _show(self, terminal_id: str) -> list[Object]:
        holders = [name for name, call in self._calls.items() if call.is_announced and _holds(call, terminal_id)]
        return [
            {
                "sessionUpdate": "tool_call_update",
                "toolCallId": name,
                "content": self._content_to_v1(self._calls[name].content),
            }
            for name in holders
        ]

    def _call(self, call: Object) -> _KnownCall:
        return self._calls.setdefault(str(call.get("toolCallId")), _KnownCall([]))

    def _content_to_v1(self, content: list[Object]) -> list[Object]:
        return [made for item in content for made in self._item_to_v1(item)]

    def _item_to_v1(self, item: Object) -> list[Object]:
        kind = item.get("type")
        bare, carried = take_carried(item, OF_V1)
        if "isOfClient" in carried:
            return [bare]
        if kind == "content":
            return [{**item, "content": block_to_v1(as_object(item.get("content")))}]
        if kind == "diff":
            return diff_to_v1(item)
        if kind == "terminal":
            shown = self._terminals.setdefault(str(item.get("terminalId")), _TerminalText())
            shown.unseen_bytes = 0
            words = shown.words()
        else:
            words = msgspec.json.encode(item).decode()
        return [carry({"type": "content", "content": {"type": "text", "text": words}}, OF_V2, {"item": item})]


def _field_to_v1(name: str, value: Json) -> tuple[Object, Object]:
    """Return a field as version 1 has it, and what is carried beside it."""
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


def _holds(call: _KnownCall, terminal_id: str) -> bool:
    return any(item.get("type") == "terminal" and item.get("terminalId") == terminal_id for item in call.content)


def _bytes_of(data: Any) -> bytes:
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else b""
    except binascii.Error:
        return b""


def _exit_words(status: Object) -> str:
    if status.get("signal"):
        return f"\n(ended by {status['signal']})"
    return f"\n(exit code {status['exitCode']})" if status.get("exitCode") is not None else ""
