"""Decoding by hand, for values that the fast decoder refused. It repairs the value or finds the reason.

The walk follows the same msgspec types as the fast decoder, so both accept the same messages. In lenient places the
marks of the schema apply: a malformed field gets its default, a malformed item is skipped, and a variant with an
unknown tag is kept as an `UnknownVariant`.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, cast

from msgspec import inspect

from dragoman.protocol.generated import v1_marks
from dragoman.protocol.mismatch import (
    FieldPath,
    MissingFieldError,
    TypeMismatchError,
    expectation,
    one_of,
    quote,
    unknown_value,
    wrong_type,
)
from dragoman.protocol.unions import AnyOf, Json, UnknownVariant, candidates

_NOUNS = {
    "ContentBlock": "content type",
    "ToolCallContent": "tool call content type",
    "SessionUpdate": "session update",
    "SessionConfigOption": "config option type",
    "PlanUpdateContent": "plan type",
    "RequestPermissionOutcome": "outcome",
    "McpServer": "MCP server type",
}

_WITHOUT_TAG = {"McpServer": " for stdio"}

_CONTAINERS = (inspect.StructType, inspect.CustomType, inspect.DictType, inspect.ListType)
_Object = dict[str, Json]


def build(type_: Any, value: Json, place: FieldPath) -> Any:
    """Return parsed JSON as a value of a type. Raises TypeMismatchError."""
    return _build(_info(type_), value, place)


def may_be_empty(type_: Any) -> bool:
    """Return whether an object of the type may be empty."""
    info = _info(type_)
    return isinstance(info, inspect.StructType) and not any(field.required for field in info.fields)


@cache
def _info(type_: Any) -> inspect.Type:
    return inspect.type_info(type_)


def _build(info: inspect.Type, value: Json, place: FieldPath) -> Any:
    match info:
        case inspect.StructType():
            return _build_struct(info, value, place)
        case inspect.UnionType():
            return _build_union(info, value, place)
        case inspect.CustomType():
            return _build_any_of(info.cls, value, place)
        case inspect.ListType() | inspect.DictType():
            return _build_collection(info, value, place)
        case _:
            return _build_scalar(info, value, place)


def _build_collection(info: inspect.ListType | inspect.DictType, value: Json, place: FieldPath) -> Any:
    if isinstance(info, inspect.DictType):
        entries = _expect_object(info, value, place)
        return {key: _build(info.value_type, item, place.key(key)) for key, item in entries.items()}
    items = _expect_list(info, value, place)
    return [_build(info.item_type, item, place.item(index)) for index, item in enumerate(items)]


def _build_scalar(info: inspect.Type, value: Json, place: FieldPath) -> Json:
    """Return a value that fits a scalar type. `bool` is a subclass of `int`, but no number in JSON."""
    match info, value:
        case (inspect.AnyType(), _) | (inspect.NoneType(), None) | (inspect.BoolType(), bool()):
            return value
        case inspect.StrType(min_length=shortest), str() if len(value) >= (shortest or 0):
            return value
        case inspect.LiteralType(values=values), str():
            if value in values:
                return value
            raise unknown_value(place, "value", value, [str(each) for each in values])
        case inspect.IntType(ge=low, le=high), int() if not isinstance(value, bool) and _is_within(value, low, high):
            return value
        case inspect.FloatType(), int() | float() if not isinstance(value, bool):
            return _float(info, value, place)
        case _:
            raise wrong_type(place, expectation(info), value)


def _is_within(value: int, low: int | None, high: int | None) -> bool:
    return (low is None or value >= low) and (high is None or value <= high)


def _float(info: inspect.Type, value: float, place: FieldPath) -> float:
    try:
        return float(value)
    except OverflowError:
        raise wrong_type(place, expectation(info), value) from None


def _expect_object(info: inspect.Type, value: Json, place: FieldPath) -> _Object:
    if not isinstance(value, dict):
        raise wrong_type(place, expectation(info), value, may_quote=False)
    return cast("_Object", value)


def _expect_list(info: inspect.Type, value: Json, place: FieldPath) -> list[Json]:
    if not isinstance(value, list):
        raise wrong_type(place, expectation(info), value, may_quote=False)
    return cast("list[Json]", value)


def _build_struct(info: inspect.StructType, value: Json, place: FieldPath) -> Any:
    members = _expect_object(info, value, place)
    _check_tag(info, members, place)
    fields: dict[str, Any] = {}
    for field in info.fields:
        if field.encode_name in members:
            fields |= _build_field(info, field, members[field.encode_name], place.key(field.encode_name))
        elif field.required:
            raise MissingFieldError(place, field.encode_name, expectation(field.type))
    return info.cls(**fields)


def _check_tag(info: inspect.StructType, members: _Object, place: FieldPath) -> None:
    """Refuse a wrong tag. In lenient places it may be wrong, because a union has already checked it."""
    if info.tag_field is None or place.lenient or members.get(info.tag_field, info.tag) == info.tag:
        return
    raise wrong_type(place.key(info.tag_field), quote(str(info.tag)), members[info.tag_field])


def _build_field(info: inspect.StructType, field: inspect.Field, value: Json, place: FieldPath) -> dict[str, Any]:
    """Return the field under its name, or nothing if its default applies."""
    mark, marks = f"{info.cls.__name__}.{field.encode_name}", _marks(info.cls)
    try:
        if place.lenient and mark in marks.SKIP_INVALID_ITEMS and isinstance(value, list):
            return {field.name: list(_valid_items(field.type, cast("list[Json]", value), place))}
        return {field.name: _build(field.type, value, place)}
    except TypeMismatchError:
        may_default = field.encode_name == "_meta" or mark in marks.DEFAULT_ON_ERROR
        if not place.lenient or not (may_default or (value is None and mark in marks.DEFAULT_ON_NULL)):
            raise
        # All required fields with this mark are arrays.
        return {field.name: []} if field.required else {}


def _marks(cls: type) -> ModuleType:
    """Return the marks of the protocol version that a type belongs to."""
    if cls.__module__ == v1_marks.__name__.replace("v1_marks", "v2"):
        from dragoman.protocol.generated import v2_marks  # most processes never use version 2

        return v2_marks
    return v1_marks


def _valid_items(info: inspect.Type, items: list[Json], place: FieldPath) -> Iterator[Any]:
    lists = [each for each in _members(info) if isinstance(each, inspect.ListType)]
    for index, item in enumerate(items):
        try:
            yield _build(lists[0].item_type, item, place.item(index))
        except TypeMismatchError:
            continue


def _members(info: inspect.Type) -> tuple[inspect.Type, ...]:
    return info.types if isinstance(info, inspect.UnionType) else (info,)


def _build_union(info: inspect.UnionType, value: Json, place: FieldPath) -> Any:
    members = [each for each in info.types if not isinstance(each, inspect.NoneType)]
    if value is None and len(members) < len(info.types):
        return None
    # The tag selects among several structs. Other members are tried in order; only the mismatch of a single
    # member of the right kind is worth reporting.
    structs = [each for each in members if isinstance(each, inspect.StructType)]
    if len(structs) > 1:
        return _build_tagged(structs, value, place)
    for each in members:
        try:
            return _build(each, value, place)
        except TypeMismatchError:
            if len(members) == 1 and _is_kind_of(each, value):
                raise
    may_quote = not any(isinstance(each, _CONTAINERS) for each in members)
    raise wrong_type(place, expectation(info), value, may_quote=may_quote)


def _is_kind_of(info: inspect.Type, value: Json) -> bool:
    """Return whether a value has at least the JSON type, so that the error is inside the value."""
    match info:
        case inspect.ListType():
            return isinstance(value, list)
        case inspect.StructType() | inspect.DictType() | inspect.CustomType():
            return isinstance(value, dict)
        case inspect.LiteralType():
            return isinstance(value, str)
        case _:
            return False


def _build_tagged(structs: list[inspect.StructType], value: Json, place: FieldPath) -> Any:
    members = _expect_object(structs[0], value, place)
    tag_field = str(structs[0].tag_field)
    by_tag = {str(struct.tag): struct for struct in structs}
    tag = members.get(tag_field)
    if not isinstance(tag, str):
        raise _no_tag(tag_field, by_tag, members, place)
    if tag in by_tag:
        return _build_struct(by_tag[tag], members, place)
    union = v1_marks.UNION_NAMES[
        structs[0].cls.__name__
    ]  # version 2 has no such unions, because all of its unions accept unknown tags
    if place.lenient and union not in v1_marks.CLOSED_UNIONS:
        return UnknownVariant(tag, members)
    raise unknown_value(place.key(tag_field), _NOUNS[union], tag, by_tag)


def _build_any_of(union: type[AnyOf], value: Json, place: FieldPath) -> Any:
    mismatches: list[tuple[Any, TypeMismatchError]] = []
    for variant in candidates(union, value):
        try:
            return _build_unknown(union, value, place) if variant is UnknownVariant else build(variant, value, place)
        except TypeMismatchError as mismatch:
            mismatches.append((variant, mismatch))
    raise _explain(union, value, place, mismatches)


def _build_unknown(union: type[AnyOf], value: _Object, place: FieldPath) -> UnknownVariant:
    mismatches: list[tuple[Any, TypeMismatchError]] = []
    for shape in union.other or ():
        try:
            build(shape, value, place)
            break
        except TypeMismatchError as mismatch:
            mismatches.append((shape, mismatch))
    else:
        if mismatches:
            raise _likeliest(mismatches, value, place)
    return UnknownVariant(str(union.tag(value)), value)


def _explain(
    union: type[AnyOf], value: Json, place: FieldPath, mismatches: list[tuple[Any, TypeMismatchError]]
) -> TypeMismatchError:
    """Return the mismatch of the variant that was most likely intended."""
    tag = union.tag(value)
    if isinstance(value, dict) and tag is None and (not mismatches or union.tag_field in value):
        return _no_tag(str(union.tag_field), union.tagged, cast("_Object", value), place)
    if not mismatches:
        return wrong_type(place, "an object", value, may_quote=False)
    if tag is not None and union.untagged and _is_unlisted(union, tag):
        unknown = unknown_value(place.key(str(union.tag_field)), _NOUNS.get(union.__name__, "type"), tag, union.tagged)
        unknown.problem += f", or no {union.tag_field}{_WITHOUT_TAG.get(union.__name__, '')}"
        return unknown
    # The variants that have the tag of the value come first, even if another variant mismatches less.
    likely = [each for each in mismatches if each[0] in union.tagged.get(tag or "", ())] or mismatches
    best = _likeliest(likely, value, place)
    best.problem += _tag_hint(union, value, place)
    return best


def _likeliest(mismatches: list[tuple[Any, TypeMismatchError]], value: Json, place: FieldPath) -> TypeMismatchError:
    best = max(mismatches, key=lambda each: _count_matches(_info(each[0]), value))[1]
    missing = {
        each.field: None for _, each in mismatches if isinstance(each, MissingFieldError) and each.place == place
    }
    if len(missing) == len(mismatches) > 1:
        best.problem += "; send " + " or ".join(quote(field) for field in missing)
    return best


def _no_tag(tag_field: str, tags: Iterable[str], members: _Object, place: FieldPath) -> TypeMismatchError:
    expected = one_of(tags)
    if tag_field in members:
        return wrong_type(place.key(tag_field), expected, members[tag_field])
    missing = MissingFieldError(place, tag_field, expected)
    missing.problem += f"; expected {expected}"
    return missing


def _count_matches(info: inspect.Type, value: Json) -> int:
    match info, value:
        case inspect.StructType(fields=fields), dict():
            return sum(field.encode_name in value for field in fields if field.required)
        case inspect.ListType(item_type=item_type), [first, *_]:
            return _count_matches(item_type, first)
        case _:
            return 0


def _tag_hint(union: type[AnyOf], value: Json, place: FieldPath) -> str:
    """Return a hint about the missing tag of a value that was decoded as the variant without a tag."""
    if not union.untagged or not isinstance(value, dict) or union.tag(value) is not None:
        return ""
    meant = [tag for tag, variants in union.tagged.items() if any(_fits(each, value, place) for each in variants)]
    return f'; if it is meant as {" or ".join(map(quote, meant))}, say so in "{union.tag_field}"' if meant else ""


def _is_unlisted(union: type[AnyOf], tag: str) -> bool:
    """Return whether the union does not know a tag.

    The name of a variant without a tag, such as `stdio`, counts as known.
    """
    return tag not in union.tagged and not any(each.__name__.lower().endswith(tag.lower()) for each in union.untagged)


def _fits(variant: Any, value: Json, place: FieldPath) -> bool:
    try:
        build(variant, value, place)
    except TypeMismatchError:
        return False
    return True
