"""Fields that a message has and the specification has not, nor a later version of it."""

from collections.abc import Iterator
from typing import Any, cast

from msgspec import inspect

from dragoman.check.judge.later import LATER
from dragoman.check.judge.message import Json, Object
from dragoman.protocol.lenient import build
from dragoman.protocol.misfit import Misfit, Place
from dragoman.protocol.unions import AnyOf, UnknownVariant, candidates


def find_extra(type_: Any, value: Json, path: str) -> Iterator[str]:
    """Yield the paths of unknown fields in a value that fits its type otherwise; `_meta` is known everywhere."""
    yield from _find(inspect.type_info(type_), value, path)


def _find(info: inspect.Type, value: Json, path: str) -> Iterator[str]:
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
    passed_over = {"_meta", info.tag_field, *LATER.get(info.cls.__name__, ())}
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
            build(variant, value, Place("", lenient=False))
        except Misfit:
            continue
        return variant
    return None
