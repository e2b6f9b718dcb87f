"""The types of the protocol once more, such that they refuse what the specification does not know.

The types of `dragoman.protocol` pass over unknown fields, as a peer has to. The specification forbids to send them,
so that each type is made anew here, on first need, with nothing else changed. A whole line is then judged in one
pass of the decoder; only one that does not fit is looked at by hand.
"""

import types
from functools import cache
from typing import Any, Literal, Union, cast, get_args, get_origin

import msgspec

from dragoman.protocol.methods import Method
from dragoman.protocol.unions import AnyOf, decode_hook

_PLURAL = (Union, types.UnionType, list, dict)


class ErrorObject(msgspec.Struct, forbid_unknown_fields=True):
    """The `error` of a response, as JSON-RPC has it."""

    code: int
    message: str
    data: Any = None


@cache
def params_decoder(method: Method[Any, Any], kind: str) -> msgspec.json.Decoder[Any]:
    """Return what decodes a line that is a request or notification of a method, if all of it is right."""
    fields: list[Any] = [("jsonrpc", Literal["2.0"]), ("method", str), ("params", tighten(method.params))]
    if kind == "request":
        fields.append(("id", Any))
    return _decoder("Call", fields)


@cache
def result_decoder(method: Method[Any, Any]) -> msgspec.json.Decoder[Any]:
    """Return what decodes a line that is the answer to a request, if all of it is right."""
    return _decoder("Answer", [("jsonrpc", Literal["2.0"]), ("id", Any), ("result", tighten(method.result))])


@cache
def error_decoder() -> msgspec.json.Decoder[Any]:
    """Return what decodes a line that is an error response, if all of it is right."""
    return _decoder("Refusal", [("jsonrpc", Literal["2.0"]), ("id", Any), ("error", ErrorObject)])


def _decoder(name: str, fields: list[Any]) -> msgspec.json.Decoder[Any]:
    envelope = msgspec.defstruct(name, fields, forbid_unknown_fields=True, kw_only=True)
    return msgspec.json.Decoder(envelope, dec_hook=decode_hook)


@cache
def tighten(type_: Any) -> Any:
    """Return a type of the protocol with unknown fields forbidden all the way down."""
    if isinstance(type_, type):
        if issubclass(type_, msgspec.Struct):
            return _tighten_struct(type_)
        return _tighten_union(type_) if issubclass(type_, AnyOf) else cast("Any", type_)
    args: tuple[Any, ...] = tuple(map(tighten, get_args(type_))) if get_origin(type_) in _PLURAL else ()
    match get_origin(type_):
        case origin if origin is Union or origin is types.UnionType:
            return Union[args]  # noqa: UP007 -- the members are only known now
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
