"""Encoding and decoding of protocol types: a fast pass with msgspec, and a slow one that repairs or explains errors."""

from functools import cache
from typing import Any, TypeVar

import msgspec

from dragoman.errors import InvalidParamsError, InvalidResultError
from dragoman.protocol.methods import Method
from dragoman.protocol.mismatch import FieldPath, TypeMismatchError
from dragoman.protocol.unions import Json, decode_hook, encode_hook

P = TypeVar("P")
R = TypeVar("R")
RawJson = bytes | bytearray | memoryview | msgspec.Raw

_REFUSALS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

ENCODER = msgspec.json.Encoder(enc_hook=encode_hook)


def encode(value: object) -> bytes:
    """Return a protocol type as JSON."""
    return ENCODER.encode(value)


def decode_params(method: Method[P, Any], raw: RawJson, *, lenient: bool = False) -> P:
    """Decode the parameters of a request or notification. Raises InvalidParamsError.

    `lenient` is for messages that a client or a relay receives. The schema's marks apply, and variants may be unknown.
    """
    try:
        return params_decoder(method).decode(raw)
    except _REFUSALS:
        pass
    try:
        return _decode_slowly(method.params, raw, FieldPath("params", lenient), null_is_empty=True)
    except TypeMismatchError as mismatch:
        raise InvalidParamsError(
            mismatch.path, mismatch.problem, expected=mismatch.expected, got=mismatch.got, sentence=str(mismatch)
        ) from None


def decode_result(method: Method[Any, R], raw: RawJson) -> R:
    """Decode the result of a request, as leniently as the schema allows. Raises InvalidResultError."""
    try:
        return result_decoder(method).decode(raw)
    except _REFUSALS:
        pass
    try:
        return _decode_slowly(method.result, raw, FieldPath("result", lenient=True))
    except TypeMismatchError as mismatch:
        raise InvalidResultError(method.name, f"{mismatch.path}: {mismatch.problem}") from None


@cache
def params_decoder(method: Method[Any, Any]) -> msgspec.json.Decoder[Any]:
    """Return the fast decoder for a method's params."""
    return msgspec.json.Decoder(method.params, dec_hook=decode_hook)


@cache
def result_decoder(method: Method[Any, Any]) -> msgspec.json.Decoder[Any]:
    """Return the fast decoder for a method's result."""
    return msgspec.json.Decoder(method.result, dec_hook=decode_hook)


def _decode_slowly(type_: Any, raw: RawJson, place: FieldPath, *, null_is_empty: bool = False) -> Any:
    # Imported here, because its tables are large and most processes never need them.
    from dragoman.protocol import lenient

    value = _parse(raw, place)
    if value is None and (null_is_empty or lenient.may_be_empty(type_)):
        value = {}
    return lenient.build(type_, value, place)


def _parse(raw: RawJson, place: FieldPath) -> Json:
    if not memoryview(raw).nbytes:
        return None
    try:
        return msgspec.json.decode(raw)
    except UnicodeDecodeError:
        raise TypeMismatchError(place.path, "not valid UTF-8") from None
    except RecursionError:
        raise TypeMismatchError(place.path, "nested too deeply") from None
    except msgspec.DecodeError as error:
        raise TypeMismatchError(place.path, f"not readable as JSON: {error}") from None
