"""JSON to protocol types: accepted or refused by name, and an accepted value survives being sent on."""

import zlib

import msgspec
from msgspec import UNSET

from dragoman.errors import InvalidParams, InvalidResult
from dragoman.protocol import lenient, methods, unions
from dragoman.protocol.decode import decode_params, decode_result, encode
from dragoman.protocol.mismatch import FieldPath
from dragoman.wire import Message, parse
from tests.fuzz.made_json import CANARY, METHODS, make_text


def check(data):
    """Judge each line: as params or result of the method it names, else as params of any method."""
    for line in data.splitlines():
        message = parse(line)
        if not isinstance(message, Message) or message.method not in methods.METHODS:
            check_params(METHODS[zlib.crc32(line) % len(METHODS)], line)
        elif message.result is not UNSET:
            check_result(methods.METHODS[message.method], message.result)
        else:
            check_params(methods.METHODS[message.method], message.params)


def check_made(provider):
    """Judge params or a result made for a method of the fuzzer's choice."""
    method = provider.PickValueInList(METHODS)
    if method.kind == "request" and provider.ConsumeBool():
        check_result(method, make_text(provider, method.result))
    else:
        check_params(method, make_text(provider, method.params))


def check_params(method, raw):
    """Judge params, strictly and leniently."""
    for is_lenient in (False, True):
        try:
            value = decode_params(method, raw, lenient=is_lenient)
        except InvalidParams as error:
            assert error.path.startswith("params")
            _check_refusal(error.data)
        else:
            assert decode_params(method, encode(value), lenient=is_lenient) == value
            _check_slow_path(method, raw)


def check_result(method, raw):
    """Judge a result."""
    try:
        value = decode_result(method, raw)
    except InvalidResult as error:
        _check_refusal(str(error))
    else:
        assert decode_result(method, encode(value)) == value


def _check_refusal(told):
    text = msgspec.json.encode(told)
    assert CANARY.encode() not in text, "a secret is told"
    assert b"Traceback" not in text


def _check_slow_path(method, raw):
    """A value that the fast path accepts is accepted by the careful one, as the same."""
    try:
        value = msgspec.json.Decoder(method.params, dec_hook=unions.decode_hook).decode(raw)
        parsed = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return  # what is not UTF-8 in a field that nobody knows is not looked at; a line is checked before
    for is_lenient in (False, True):
        assert lenient.build(method.params, parsed, FieldPath("params", is_lenient)) == value
