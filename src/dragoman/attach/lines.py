"""Marks that the bridge and the relay add to messages for each other, in `_meta`.

The bridge marks each stored update with a cursor. The relay removes the marks before the editor sees the message.
Updates are frequent, so `unmark` recognizes the bridge's usual form by a pattern and decodes only other lines.
"""

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of

OWN = "dragoman"
"""The key in `_meta` for data between bridge and relay."""

PROMPT_KEY = "dragoman/prompt"
"""The key in `_meta` of a user message that holds the key of its prompt."""

_MARK = b'"dragoman'
_HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'
_TAIL = re.compile(rb',"_meta":\{"dragoman":\{"cursor":"([^"\\]*)","time":\d+\}\}\}\}$')
"""The end of a line to which the bridge added `_meta`."""


class MarkedLine(msgspec.Struct, frozen=True):
    """An update for the editor, and the marks that were removed from it."""

    line: bytes
    session_id: str | None = None
    cursor: str | None = None
    prompt_key: str | None = None


def unmark(line: bytes) -> MarkedLine:
    """Remove the marks from a notification."""
    found = _TAIL.search(line, max(0, len(line) - 200)) if line.startswith(_HEAD) else None
    if found is not None and line.count(_MARK) == 1:
        session_id = line[len(_HEAD) : line.index(b'"', len(_HEAD))]
        if b"\\" not in session_id:
            return MarkedLine(line[: found.start()] + b"}}", session_id.decode(), found[1].decode())
    return _unmark_slowly(line) if _MARK in line else MarkedLine(line)


def _unmark_slowly(line: bytes) -> MarkedLine:
    fields = fields_of(Raw(line))  # an invalid message has no fields and passes unchanged
    params = fields_of(fields.get("params", UNSET))
    meta = fields_of(params.get("_meta", UNSET))
    if OWN not in meta and PROMPT_KEY not in meta:
        return MarkedLine(line)
    own, key = fields_of(meta.pop(OWN, UNSET)), string_of(meta.pop(PROMPT_KEY, None))
    session_id, cursor = string_of(params.get("sessionId")), string_of(own.get("cursor"))
    fields["params"] = Raw(encode(_with_meta(params, meta)))
    return MarkedLine(encode(fields), session_id, cursor, key)


def unmark_result(line: bytes) -> tuple[bytes, dict[str, Raw]]:
    """Remove the bridge's mark from an answer. Return the line and the mark."""
    fields = decode_fields(line)
    result = fields_of(fields.get("result", UNSET))
    meta = fields_of(result.get("_meta", UNSET))
    own = fields_of(meta.pop(OWN, UNSET))
    if not own:
        return line, {}
    fields["result"] = Raw(encode(_with_meta(result, meta)))
    return encode(fields), own


def add_mark(params: Raw, **own: str) -> dict[str, Any]:
    """Return params with a mark for the bridge in their `_meta`."""
    fields = fields_of(params)
    meta = fields_of(fields.get("_meta", UNSET))
    return {**fields, "_meta": {**meta, OWN: {**fields_of(meta.get(OWN, UNSET)), **own}}}


def _with_meta(fields: dict[str, Raw], meta: dict[str, Raw]) -> dict[str, Any]:
    """Return an object with this `_meta`, or without `_meta` if it is empty."""
    rest = {name: value for name, value in fields.items() if name != "_meta"}
    return {**rest, "_meta": meta} if meta else dict(rest)
