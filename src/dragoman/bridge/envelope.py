"""JSON-RPC lines taken apart and put together; their payloads are not decoded."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import ErrorCode, RpcError
from dragoman.wire import HEADS, Message, error_object
from dragoman.wire.message import BAD_JSON, parse_error

encode = msgspec.json.Encoder().encode
decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode

ELICIT = "elicitation/create"

UPDATE = b'"session/update"'
"""Bytes that stand in every update."""

_TERMINAL = re.compile(rb'("terminalId"\s*:\s*)("(?:[^"\\]|\\.)*+")', re.DOTALL)
"""A terminal id, wherever a message has one: inside a string its quotes would not be bare."""


class _SessionParams(msgspec.Struct, gc=False, rename="camel"):
    session_id: str


class _Update(msgspec.Struct, gc=False):
    jsonrpc: str
    method: str
    params: _SessionParams
    id: Raw | UnsetType = UNSET


class _Bare(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    jsonrpc: Raw
    method: Raw
    params: Raw


_decode_update = msgspec.json.Decoder(_Update).decode
_decode_session = msgspec.json.Decoder(_SessionParams).decode
_decode_bare = msgspec.json.Decoder(_Bare).decode
_decode_list = msgspec.json.Decoder(list[Raw]).decode
_decode_string = msgspec.json.Decoder(str).decode


def session_of_update(line: bytes) -> str | None:
    """Give the session of a `session/update`; None if the line is anything else."""
    try:
        update = _decode_update(line)
    except BAD_JSON:
        return None
    if update.method != "session/update" or update.jsonrpc != "2.0" or update.id is not UNSET:
        return None
    return update.params.session_id


def session_of(params: Raw) -> str | None:
    """Give the session that params name."""
    try:
        return _decode_session(params).session_id
    except BAD_JSON:
        return None


def fields_of(raw: Raw | UnsetType) -> dict[str, Raw]:
    """Give the fields of an object; anything else has none."""
    if raw is UNSET:
        return {}
    try:
        return decode_fields(raw)
    except BAD_JSON:
        return {}


def parse_list(raw: Raw | None) -> list[Raw]:
    """Give the items of a list; anything else has none."""
    try:
        return [] if raw is None else _decode_list(raw)
    except BAD_JSON:
        return []


def string_of(raw: Raw | None) -> str | None:
    """Decode a string; None for anything else."""
    try:
        return None if raw is None else _decode_string(raw)
    except BAD_JSON:
        return None


def is_given(raw: Raw | None) -> bool:
    """Tell whether a capability is there: absent, null and false are not."""
    return raw is not None and bytes(raw) not in (b"null", b"false")


def is_unrouted(message: Message) -> bool:
    """Tell whether an answer says that there is no such method."""
    return message.error is not UNSET and parse_error(message.error).code == ErrorCode.METHOD_NOT_FOUND


def with_id(line: bytes, id_: bytes) -> bytes:
    """Give a message another id; everything else stays as it came."""
    fields = decode_fields(line)
    fields["id"] = Raw(id_)
    return encode(fields)


def make_request(id_: bytes, method: str, params: Any) -> bytes:
    """Make a request of the bridge."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "method": method, "params": params})


def make_notification(method: str, params: Any) -> bytes:
    """Make a notification of the bridge."""
    return b"%b%b}" % (HEADS[method], encode(params))


def make_result(id_: bytes, result: Any) -> bytes:
    """Make the answer to a request."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "result": result})


def make_error(id_: bytes, code: int, data: Any = None, *, sentence: str | None = None) -> bytes:
    """Make an error answer; `data` gives the reason in words, unless there is another sentence."""
    error = RpcError(code, data, sentence=sentence)
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})


def add_cursor(line: bytes, cursor: bytes, time_ms: int) -> bytes:
    """Add to a notification its cursor and its time, as `params._meta.dragoman`."""
    note = b'{"cursor":"%b","time":%d}' % (cursor, time_ms)
    if line.endswith(b"}}") and b'"_meta"' not in line and _params_are_last(line):
        return b'%b,"_meta":{"dragoman":%b}}}' % (line[:-2], note)
    fields = decode_fields(line)
    params = fields_of(fields.get("params", UNSET))
    meta = fields_of(params.get("_meta", UNSET))
    meta["dragoman"] = Raw(note)
    fields["params"] = Raw(encode({**params, "_meta": meta}))
    return encode(fields)


def rename_session(line: bytes, session_id: str) -> bytes:
    """Have a notification name another session."""
    return _with_param(line, "sessionId", session_id)


def rename_request(line: bytes, id_: bytes) -> bytes:
    """Have a message be about a request of another id."""
    return _with_param(line, "requestId", Raw(id_))


def rename_terminals(line: bytes, names: Mapping[str, str]) -> bytes:
    """Have a message of the agent name terminals as its viewer does."""
    return _TERMINAL.sub(partial(_rename_terminal, names), line) if b'"terminalId"' in line else line


def _rename_terminal(names: Mapping[str, str], found: "re.Match[bytes]") -> bytes:
    name = names.get(string_of(Raw(found[2])) or "")
    return found[0] if name is None else found[1] + encode(name)


def _with_param(line: bytes, key: str, value: Any) -> bytes:
    fields = decode_fields(line)
    fields["params"] = Raw(encode({**fields_of(fields.get("params", UNSET)), key: value}))
    return encode(fields)


def _params_are_last(line: bytes) -> bool:
    """Tell whether a line has nothing after its params, which are an object with something in it."""
    try:
        bare = _decode_bare(line)
    except BAD_JSON:
        return False
    params = bytes(bare.params)
    return line.endswith(params + b"}") and params[1:-1].strip() != b""
