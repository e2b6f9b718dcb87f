"""JSON to protocol types: accepted or refused by field name, and an accepted value can be sent again."""

import zlib

import msgspec
from msgspec import UNSET

from dragoman.errors import InvalidParamsError, InvalidResultError
from dragoman.protocol import lenient, methods, unions
from dragoman.protocol.decode import decode_params, decode_result, encode
from dragoman.protocol.mismatch import FieldPath
from dragoman.wire import Message, parse
from tests.fuzz.made_json import CANARY, METHODS, make_text


def check(data):
    """Check each line as params or result of its method, or else as params of any method."""
    for line in data.splitlines():
        message = parse(line)
        if not isinstance(message, Message) or message.method not in methods.METHODS:
            check_params(METHODS[zlib.crc32(line) % len(METHODS)], line)
        elif message.result is not UNSET:
            check_result(methods.METHODS[message.method], message.result)
        else:
            check_params(methods.METHODS[message.method], message.params)


def check_made(provider):
    """Check params or a result of a method that the fuzzer selects."""
    method = provider.PickValueInList(METHODS)
    if method.kind == "request" and provider.ConsumeBool():
        check_result(method, make_text(provider, method.result))
    else:
        check_params(method, make_text(provider, method.params))


def check_params(method, raw):
    """Check params with strict and lenient decoding."""
    for is_lenient in (False, True):
        try:
            value = decode_params(method, raw, lenient=is_lenient)
        except InvalidParamsError as error:
            assert error.path.startswith("params")
            _check_refusal(error.data)
        else:
            assert decode_params(method, encode(value), lenient=is_lenient) == value
            _check_slow_path(method, raw)


def check_result(method, raw):
    """Check a result."""
    try:
        value = decode_result(method, raw)
    except InvalidResultError as error:
        _check_refusal(str(error))
    else:
        assert decode_result(method, encode(value)) == value


def _check_refusal(told):
    text = msgspec.json.encode(told)
    assert CANARY.encode() not in text, "a secret is told"
    assert b"Traceback" not in text


def _check_slow_path(method, raw):
    """Check that the slow path accepts the same value as the fast path."""
    try:
        value = msgspec.json.Decoder(method.params, dec_hook=unions.decode_hook).decode(raw)
        parsed = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return  # invalid UTF-8 in an unknown field is not decoded here, because lines are checked before
    for is_lenient in (False, True):
        assert lenient.build(method.params, parsed, FieldPath("params", is_lenient)) == value
