"""Lines of JSON-RPC taken apart and put together, without a look at their payloads."""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from dragoman.errors import RpcError
from dragoman.wire.message import BAD_JSON, error_object

encode = msgspec.json.Encoder().encode
decode_fields = msgspec.json.Decoder(dict[str, Raw]).decode

_decode_string = msgspec.json.Decoder(str).decode


def fields_of(raw: Raw | UnsetType) -> dict[str, Raw]:
    """Give the fields of an object; anything else has none."""
    if raw is UNSET:
        return {}
    try:
        return decode_fields(raw)
    except BAD_JSON:
        return {}


def string_of(raw: Raw | None) -> str | None:
    """Decode a string; None for anything else."""
    try:
        return None if raw is None else _decode_string(raw)
    except BAD_JSON:
        return None


def with_id(line: bytes, id_: bytes) -> bytes:
    """Give a message another id; everything else stays as it came."""
    fields = decode_fields(line)
    fields["id"] = Raw(id_)
    return encode(fields)


def with_param(line: bytes, key: str, value: Any) -> bytes:
    """Give a message another value of one of its params."""
    fields = decode_fields(line)
    fields["params"] = Raw(encode({**fields_of(fields.get("params", UNSET)), key: value}))
    return encode(fields)


def make_request(id_: bytes, method: str, params: Any) -> bytes:
    """Make a request."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "method": method, "params": params})


def make_result(id_: bytes, result: Any) -> bytes:
    """Make the answer to a request."""
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "result": result})


def make_error(id_: bytes, code: int, data: Any = None, *, sentence: str | None = None) -> bytes:
    """Make an error answer; `data` gives the reason in words, unless there is another sentence."""
    error = RpcError(code, data, sentence=sentence)
    return encode({"jsonrpc": "2.0", "id": Raw(id_), "error": error_object(error)})
