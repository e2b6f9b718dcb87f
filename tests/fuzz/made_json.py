"""JSON built from the protocol's types and a fuzzer's bytes, mostly valid with some mistakes."""

import json
from functools import cache

from msgspec import inspect

from dragoman.protocol import methods
from dragoman.protocol.mismatch import SECRET_FIELDS

METHODS = [*methods.REQUESTS.values(), *methods.NOTIFICATIONS.values()]
CANARY = "canary-in-a-secret-field"
_WRONG_ONE_IN = 24
_ODD = [
    None,
    True,
    0,
    -1,
    1.5,
    2**53,
    2**64,
    -(2**63) - 1,
    10**400,
    1e308,
    -0.0,
    "",
    "\u2028é",
    "[",
    [],
    {},
    [[]],
    {"": {}},
]
_MAX_DEPTH = 8


def make_text(provider, type_):
    """Return the JSON text of a value of a type."""
    return json.dumps(make(provider, _info(type_)), ensure_ascii=provider.ConsumeBool()).encode()


@cache
def _info(type_):
    return inspect.type_info(type_)


def make(provider, info, *, secret=False, depth=0):
    """Return a value that usually fits a type."""
    if provider.ConsumeIntInRange(0, _WRONG_ONE_IN) == 1 and not secret:
        return provider.PickValueInList(_ODD)
    match info:
        case inspect.StructType():
            return _make_struct(provider, info, secret, depth)
        case inspect.UnionType(types=types):
            return make(provider, provider.PickValueInList(list(types)), secret=secret, depth=depth)
        case inspect.CustomType(cls=union):
            return _make_any_of(provider, union, secret, depth)
        case inspect.ListType(item_type=item):
            count = provider.ConsumeIntInRange(0, 2) if depth < _MAX_DEPTH else 0
            return [make(provider, item, secret=secret, depth=depth + 1) for _ in range(count)]
        case inspect.DictType(value_type=value):
            return {_word(provider): make(provider, value, secret=secret, depth=depth + 1)}
        case _:
            return _make_scalar(provider, info, secret)


def _make_struct(provider, info, secret, depth):
    value = {}
    if info.tag_field is not None and provider.ConsumeIntInRange(0, 30) != 1:
        value[info.tag_field] = info.tag if provider.ConsumeIntInRange(0, 15) != 1 else _word(provider)
    for field in info.fields:
        wanted = field.required or depth < 3
        if provider.ConsumeIntInRange(0, 20 if wanted else 1) != 1:
            hidden = secret or field.encode_name in SECRET_FIELDS
            value[field.encode_name] = make(provider, field.type, secret=hidden, depth=depth + 1)
    if provider.ConsumeIntInRange(0, 10) == 1:
        value[_word(provider)] = provider.PickValueInList(_ODD)
    return value


def _make_any_of(provider, union, secret, depth):
    tagged = [(tag, variant) for tag, variants in union.tagged.items() for variant in variants]
    tag, variant = provider.PickValueInList([*tagged, *((None, each) for each in union.untagged)])
    value = make(provider, _info(variant), secret=secret, depth=depth)
    if isinstance(value, dict) and union.tag_field and tag is not None and provider.ConsumeIntInRange(0, 15) != 1:
        value[union.tag_field] = tag
    return value


def _make_scalar(provider, info, secret):
    match info:
        case inspect.NoneType():
            return None
        case inspect.BoolType():
            return provider.ConsumeBool()
        case inspect.IntType():
            return provider.PickValueInList([0, 1, 7, 65535, 65536, 2**32, 2**63 - 1, 2**64 - 1])
        case inspect.FloatType():
            return provider.PickValueInList([0, 0.5, -1e300, 5e-324, 2**70])
        case inspect.LiteralType(values=values):
            return provider.PickValueInList(list(values))
        case inspect.AnyType():
            return CANARY if secret else provider.PickValueInList(_ODD)
        case _:
            return CANARY if secret else _word(provider)


def _word(provider):
    return provider.ConsumeUnicodeNoSurrogates(provider.ConsumeIntInRange(0, 6))
