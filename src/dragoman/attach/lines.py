"""Lines of the bridge, with the marks that are for the relay alone taken off."""

import re
from typing import Any

import msgspec
from msgspec import UNSET, Raw

from dragoman.wire.envelope import decode_fields, encode, fields_of, string_of

OWN = "dragoman"
"""The key of `_meta` under which bridge and relay talk."""

PROMPT_KEY = "dragoman/prompt"
"""The key of `_meta` of a user's message, for the key of its prompt."""

_MARK = b'"dragoman'
_HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'
_TAIL = re.compile(rb',"_meta":\{"dragoman":\{"cursor":"([^"\\]*)","time":\d+\}\}\}\}$')
"""How the bridge ends a line that has no `_meta` of its own."""


class MarkedLine(msgspec.Struct, frozen=True):
    """An update as the editor is to see it, and what the bridge told with it."""

    line: bytes
    session_id: str | None = None
    cursor: str | None = None
    prompt_key: str | None = None


def unmark(line: bytes) -> MarkedLine:
    """Take the marks off a notification."""
    found = _TAIL.search(line, max(0, len(line) - 200)) if line.startswith(_HEAD) else None
    if found is not None and line.count(_MARK) == 1:
        session_id = line[len(_HEAD) : line.index(b'"', len(_HEAD))]
        if b"\\" not in session_id:
            return MarkedLine(line[: found.start()] + b"}}", session_id.decode(), found[1].decode())
    return _unmark_slowly(line) if _MARK in line else MarkedLine(line)


def _unmark_slowly(line: bytes) -> MarkedLine:
    fields = fields_of(Raw(line))  # what is no message has no fields, and passes as it came
    params = fields_of(fields.get("params", UNSET))
    meta = fields_of(params.get("_meta", UNSET))
    if OWN not in meta and PROMPT_KEY not in meta:
        return MarkedLine(line)
    own, key = fields_of(meta.pop(OWN, UNSET)), string_of(meta.pop(PROMPT_KEY, None))
    session_id, cursor = string_of(params.get("sessionId")), string_of(own.get("cursor"))
    fields["params"] = Raw(encode(_with_meta(params, meta)))
    return MarkedLine(encode(fields), session_id, cursor, key)


def take_result_mark(line: bytes) -> tuple[bytes, dict[str, Raw]]:
    """Give an answer without what the bridge tells the relay in it, and that."""
    fields = decode_fields(line)
    result = fields_of(fields.get("result", UNSET))
    meta = fields_of(result.get("_meta", UNSET))
    own = fields_of(meta.pop(OWN, UNSET))
    if not own:
        return line, {}
    fields["result"] = Raw(encode(_with_meta(result, meta)))
    return encode(fields), own


def add_mark(params: Raw, **own: str) -> dict[str, Any]:
    """Give params with a note to the bridge in their `_meta`."""
    fields = fields_of(params)
    meta = fields_of(fields.get("_meta", UNSET))
    return {**fields, "_meta": {**meta, OWN: {**fields_of(meta.get(OWN, UNSET)), **own}}}


def _with_meta(fields: dict[str, Raw], meta: dict[str, Raw]) -> dict[str, Any]:
    """Give an object with this `_meta`, or with none if nothing is in it."""
    rest = {name: value for name, value in fields.items() if name != "_meta"}
    return {**rest, "_meta": meta} if meta else dict(rest)
