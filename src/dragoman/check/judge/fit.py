"""Comparison of messages with the schema, including fields that the specification does not have.

The types of `dragoman.protocol` ignore unknown fields, as a peer must. But the specification forbids sending them. Each
type is therefore built again here, on first use, with unknown fields forbidden and nothing else changed. The decoder
judges a whole line in one pass. Only a line that does not fit is examined field by field.
"""

import types
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import inspect

from dragoman.check.judge.dialect import Dialect
from dragoman.check.judge.later import LATER
from dragoman.check.judge.message import Json, Object, SeenMessage
from dragoman.protocol import lenient
from dragoman.protocol.lenient import build
from dragoman.protocol.methods import Method
from dragoman.protocol.mismatch import SECRET_FIELDS, FieldPath, TypeMismatchError, quote
from dragoman.protocol.unions import AnyOf, UnknownVariant, candidates, decode_hook
from dragoman.wire.message import BAD_JSON

EARLIER: dict[str, frozenset[str]] = {
    "InitializeRequest": frozenset({"clientCapabilities", "clientInfo"}),
    "InitializeResponse": frozenset({"agentCapabilities", "agentInfo"}),
}
"""Version 1 fields in the messages that agree on a version. A peer may send the fields of both versions."""

_PLURAL = (Union, types.UnionType, list, dict)


class StrictErrorObject(msgspec.Struct, forbid_unknown_fields=True):
    """The `error` of a response, as in JSON-RPC."""

    code: int
    message: str
    data: Any = None


@cache
def params_decoder(method: Method[Any, Any], kind: str) -> msgspec.json.Decoder[Any]:
    """Return the strict decoder for a request or notification of a method."""
    fields: list[Any] = [("jsonrpc", Literal["2.0"]), ("method", str), ("params", tighten(method.params))]
    if kind == "request":
        fields.append(("id", Any))
    return _decoder("Call", fields)


@cache
def result_decoder(method: Method[Any, Any]) -> msgspec.json.Decoder[Any]:
    """Return the strict decoder for the response to a request."""
    return _decoder("Answer", [("jsonrpc", Literal["2.0"]), ("id", Any), ("result", tighten(method.result))])


@cache
def error_decoder() -> msgspec.json.Decoder[Any]:
    """Return the strict decoder for an error response."""
    return _decoder("Refusal", [("jsonrpc", Literal["2.0"]), ("id", Any), ("error", StrictErrorObject)])


def _decoder(name: str, fields: list[Any]) -> msgspec.json.Decoder[Any]:
    envelope = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
    return msgspec.json.Decoder(envelope, dec_hook=decode_hook)


@cache
def tighten(type_: Any) -> Any:
    """Return a protocol type with unknown fields forbidden at all levels."""
    if isinstance(type_, type):
        if issubclass(type_, msgspec.Struct):
            return _tighten_struct(type_)
        return _tighten_union(type_) if issubclass(type_, AnyOf) else cast("Any", type_)
    args: tuple[Any, ...] = tuple(map(tighten, get_args(type_))) if get_origin(type_) in _PLURAL else ()
    match get_origin(type_):
        case origin if origin is Union or origin is types.UnionType:
            return Union[args]  # noqa: UP007 -- the members are only known at run time
        case origin if origin is list:
            return list[args[0]]
        case origin if origin is dict:
            return dict[args[0], args[1]]
        case _:
            return type_


def _tighten_struct(struct: type[msgspec.Struct]) -> type[msgspec.Struct]:
    config = struct.__struct_config__
    fields: list[Any] = []
    for field in msgspec.structs.fields(struct):
        type_ = tighten(field.type)
        fields.append((field.name, type_) if field.required else (field.name, type_, None))
    names = {field.name: field.encode_name for field in msgspec.structs.fields(struct)}
    return msgspec.defstruct(
        struct.__name__,
        fields,
        kw_only=True,
        forbid_unknown_fields=True,
        rename=names,
        tag_field=config.tag_field,
        tag=config.tag,
    )


def _tighten_union(union: type[AnyOf]) -> type[AnyOf]:
    return types.new_class(
        union.__name__,
        (AnyOf,),
        {
            "tag_field": union.tag_field,
            "tagged": {tag: tuple(map(tighten, variants)) for tag, variants in union.tagged.items()},
            "other": union.other,
            "untagged": tuple(map(tighten, union.untagged)),
        },
    )


def find_extra(type_: Any, value: Json, path: str) -> Iterator[str]:
    """Yield the paths of unknown fields in a value that otherwise fits its type. `_meta` is always known."""
    yield from _find(inspect.type_info(type_), value, path)


def _find(info: inspect.Type, value: Json, path: str) -> Iterator[str]:
    """Yield the paths of the fields that the schema does not define, at any depth."""
    # Only containers can have unknown fields. In a union, search the variant that the value was meant to be.
    match info, value:
        case inspect.StructType(), dict():
            yield from _find_in_struct(info, cast("Object", value), path)
        case inspect.UnionType(types=members), dict() | list():
            for member in _meant(members, value):
                yield from _find(member, value, path)
        case inspect.CustomType(cls=union), _ if issubclass(union, AnyOf):
            variant = _variant(union, value)
            if variant is not None:
                yield from find_extra(variant, value, path)
        case inspect.ListType(item_type=item_type), list():
            for index, item in enumerate(cast("list[Json]", value)):
                yield from _find(item_type, item, f"{path}[{index}]")
        case inspect.DictType(value_type=value_type), dict():
            for key, item in cast("Object", value).items():
                yield from _find(value_type, item, f"{path}.{key}")
        case _:
            return


def _find_in_struct(info: inspect.StructType, members: Object, path: str) -> Iterator[str]:
    known = {field.encode_name: field.type for field in info.fields}
    owner = info.cls.__name__
    passed_over = {"_meta", info.tag_field, *LATER.get(owner, ()), *EARLIER.get(owner, ())}
    for name, value in members.items():
        if name in known:
            yield from _find(known[name], value, f"{path}.{name}")
        elif name not in passed_over:
            yield f"{path}.{name}"


def _meant(members: tuple[inspect.Type, ...], value: Json) -> list[inspect.Type]:
    structs = [each for each in members if isinstance(each, inspect.StructType)]
    if len(structs) > 1 and isinstance(value, dict):
        tag = cast("Object", value).get(str(structs[0].tag_field))
        return [each for each in structs if each.tag == tag]
    return [each for each in members if not isinstance(each, inspect.NoneType)]


def _variant(union: type[AnyOf], value: Json) -> Any:
    for variant in candidates(union, value):
        if variant is UnknownVariant:
            return None
        try:
            build(variant, value, FieldPath("", lenient=False))
        except TypeMismatchError:
            continue
        return variant
    return None


MAX_EXPLAINED = 100
"""Maximum number of times to explain the same refusal, which costs a hundred times as much as decoding."""

_ENVELOPES = {
    "request": frozenset({"jsonrpc", "id", "method", "params"}),
    "notification": frozenset({"jsonrpc", "method", "params"}),
    "result": frozenset({"jsonrpc", "id", "result", "error"}),
    "error": frozenset({"jsonrpc", "id", "result", "error"}),
}
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _StrictPlace(FieldPath):
    """A strict place. Even a field that only informs a peer must be correct."""

    def key(self, name: str) -> FieldPath:
        step = f".{name}" if name.isidentifier() else f"[{quote(name)}]"
        return _StrictPlace(self.path + step, lenient=False, secret=self.secret or name in SECRET_FIELDS)

    def item(self, index: int) -> FieldPath:
        return _StrictPlace(f"{self.path}[{index}]", lenient=False, secret=self.secret)


class Flaw(msgspec.Struct, frozen=True):
    """A place in a message that does not fit the schema, or a field that the schema does not have."""

    path: str
    problem: str
    mismatch: TypeMismatchError | None = None


class Fitter:
    """Compares the messages of one conversation with the schema of its version."""

    def __init__(self) -> None:
        self._explained: Counter[tuple[str, str, str]] = Counter()
        self._decoders: dict[tuple[int, str, str], Any] = {}

    def find_flaws(self, message: SeenMessage, dialect: Dialect) -> list[Flaw]:
        """Return the flaws of a message. Unknown methods have none."""
        key = (dialect.version, message.kind, message.method)
        decode = self._decoders.get(key)
        if decode is None:
            decode = _find_decode(message, dialect)
            if decode is None:
                return []
            self._decoders[key] = decode
        try:
            decode(message.entry.line)
        except BAD_JSON as error:
            return self._explain(message, dialect, str(error))
        return []

    def _explain(self, message: SeenMessage, dialect: Dialect, refusal: str) -> list[Flaw]:
        key = (message.kind, message.method, refusal)
        self._explained[key] += 1
        if self._explained[key] > MAX_EXPLAINED:
            return []
        return [*_explain_body(message, dialect), *_explain_envelope(message)]


def is_readable(message: SeenMessage, dialect: Dialect) -> bool:
    """Return whether a request's params can be decoded leniently although they do not fit."""
    method = dialect.requests.get(message.method)
    if method is None:
        return True
    try:
        lenient.build(method.params, {} if message.body is None else message.body, FieldPath("params", lenient=True))
    except TypeMismatchError:
        return False
    return True


def _find_decode(message: SeenMessage, dialect: Dialect) -> Any:
    if message.kind == "error":
        return error_decoder().decode
    method = dialect.find_method(message.kind, message.method)
    if method is None:
        return None
    if message.kind == "result":
        return result_decoder(method).decode
    return params_decoder(method, message.kind).decode


def _explain_body(message: SeenMessage, dialect: Dialect) -> list[Flaw]:
    if message.kind == "error":
        return _explain_error(message.body)
    method = dialect.find_method(message.kind, message.method)
    if method is None:
        return []
    name, type_ = ("result", method.result) if message.kind == "result" else ("params", method.params)
    value: Json = message.body
    if value is None and (lenient.may_be_empty(type_) or type_ is Any):
        return []
    try:
        lenient.build(type_, value, _StrictPlace(name, lenient=False))
    except TypeMismatchError as mismatch:
        return [Flaw(mismatch.path, mismatch.problem, mismatch)]
    return [Flaw(path, "the specification has no such field") for path in find_extra(type_, value, name)]


def _explain_error(value: Json) -> list[Flaw]:
    try:
        msgspec.convert(value, StrictErrorObject)
    except msgspec.ValidationError as error:
        return [Flaw("error", str(error))]
    return []


def _explain_envelope(message: SeenMessage) -> list[Flaw]:
    allowed = _ENVELOPES[message.kind]
    return [
        Flaw(name, "the specification has no such field")
        for name in _decode_fields(message.entry.line)
        if name not in allowed
    ]
