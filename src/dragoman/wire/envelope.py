"""Edits and builds lines of JSON-RPC without decoding their payloads."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import RpcError
from dragoman.wire.message import BAD_JSON, error_object

encode = msgspec.json.Encoder().encode
decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode

_decode_string = msgspec.json.Decoder(str).decode


class _SessionParams(msgspec.Struct, gc=False):
    session_id: str = msgspec.field(name="sessionId")


_decode_session = msgspec.json.Decoder(_SessionParams).decode


def fields_of(raw: Raw | UnsetType) -> dict[str, Raw]:
    """Return the fields of a JSON object. Return an empty dict for any other value."""
    if raw is UNSET:
        return {}
    try:
        return decode_fields(raw)
    except BAD_JSON:
        return {}


def string_of(raw: Raw | None) -> str | None:
    """Decode a string. Return None for any other value."""
    try:
        return None if raw is None else _decode_string(raw)
    except BAD_JSON:
        return None


def session_of(params: Raw) -> str | None:
    """Return the session ID in `params`, or None if there is none."""
    try:
        return _decode_session(params).session_id
    except BAD_JSON:
        return None


def with_id(line: bytes, id_: bytes) -> bytes:
    """Return a message with its ID replaced."""
    fields = decode_fields(line)
    fields["id"] = Raw(id_)
    return encode(fields)


def with_param(line: bytes, key: str, value: Any) -> bytes:
    """Return a message with one of its params replaced."""
    fields = decode_fields(line)
    fields["params"] = Raw(encode({**fields_of(fields.get("params", UNSET)), key: value}))
    return encode(fields)


def make_request(id_: bytes, method: str, params: Any) -> bytes:
    """Build a request."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "method": method, "params": params})


def make_result(id_: bytes, result: Any) -> bytes:
    """Build a response with a result."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "result": result})


def make_error(id_: bytes, code: int, data: Any = None, *, sentence: str | None = None) -> bytes:
    """Build an error response. `data` becomes the message, unless `sentence` is given."""
    error = RpcError(code, data, sentence=sentence)
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})
