"""The base of the generated types: structs, unions that msgspec cannot decode, and unknown variants.

msgspec tells the variants of a union apart by a tag that each of them has. Some unions of ACP are different: one
variant has no tag (an MCP server on stdio), variants differ only in their fields (text and blob resources), or one
variant matches every unlisted tag. For a type checker these are plain unions. At run time each is a subclass of
`AnyOf`, which msgspec passes to `decode_hook` as parsed JSON.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""


def wire_name(name: str) -> str:
    """Return the wire name of a field of `AcpStruct`."""
    if name == "meta":
        return "_meta"
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


class AcpStruct(msgspec.Struct, omit_defaults=True, rename=wire_name):
    """A struct with camelCase field names on the wire, and `_meta` for `meta`."""


class UnknownVariant:
    """A union variant that this version does not know, kept unchanged."""

    __slots__ = ("data", "tag")

    def __init__(self, tag: str, data: dict[str, Json]) -> None:
        self.tag = tag
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownVariant) and (self.tag, self.data) == (other.tag, other.data)

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- mutable, like every struct

    def __repr__(self) -> str:
        return f"UnknownVariant(tag={self.tag!r}, data={self.data!r})"


class _AnyOfType(type):
    """Makes `isinstance` work as for the plain union that a type checker sees."""

    variants: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.variants)


class AnyOf(metaclass=_AnyOfType):
    """A union whose variants are tried in order. The first that fits is used."""

    tag_field: str | None = None
    tagged: Mapping[str, tuple[Any, ...]] = {}
    other: tuple[Any, ...] | None = None
    untagged: tuple[Any, ...] = ()

    def __init_subclass__(
        cls,
        tag_field: str | None = None,
        tagged: Mapping[str, tuple[Any, ...]] | None = None,
        other: tuple[Any, ...] | None = None,
        untagged: tuple[Any, ...] = (),
    ) -> None:
        cls.tag_field = tag_field
        cls.tagged = tagged or {}
        cls.other = other
        cls.untagged = untagged
        each = [*(variant for variants in cls.tagged.values() for variant in variants), *untagged]
        unknown = () if other is None else (UnknownVariant,)
        cls.variants = (*(getattr(variant, "__origin__", variant) for variant in each), *unknown)

    @classmethod
    def tag(cls, value: Json) -> str | None:
        """Return the tag of a value, if it is a string."""
        if cls.tag_field is None or not isinstance(value, dict):
            return None
        tag = cast("dict[str, Json]", value).get(cls.tag_field)
        return tag if isinstance(tag, str) else None


def candidates(union: type[AnyOf], value: Json) -> Iterator[Any]:
    """Yield the possible variants of a value in the order to try. `UnknownVariant` means an unlisted tag."""
    yield from _tagged(union, union.tag(value))
    yield from union.untagged


def _tagged(union: type[AnyOf], tag: str | None) -> tuple[Any, ...]:
    if tag is None:
        return ()
    return union.tagged.get(tag, () if union.other is None else (UnknownVariant,))


def decode_hook(union: type[Any], value: Json) -> Any:
    """Decode an irregular union from parsed JSON, as msgspec's `dec_hook`. Raises ValueError if no variant fits.

    A value with a known tag must fit that variant. The slow decoder decides whether it may be another one, and can
    repair it.
    """
    if not issubclass(union, AnyOf):
        raise NotImplementedError(f"{union} is not a union of the protocol")
    for variant in _tagged(union, union.tag(value)) or union.untagged:
        try:
            return _decode_unknown(union, value) if variant is UnknownVariant else _convert(value, variant)
        except msgspec.ValidationError:
            continue
    raise ValueError(f"no variant of {union.__name__} fits")


def _decode_unknown(union: type[AnyOf], value: dict[str, Json]) -> UnknownVariant:
    tag = union.tag(value)
    if tag is None or not (union.other == () or any(_fits(value, shape) for shape in union.other or ())):
        raise msgspec.ValidationError(f"no {union.__name__}")
    return UnknownVariant(tag, value)


def _fits(value: Json, shape: Any) -> bool:
    try:
        _convert(value, shape)
    except msgspec.ValidationError:
        return False
    return True


def _convert(value: Json, variant: Any) -> Any:
    return msgspec.convert(value, variant, dec_hook=decode_hook)


def encode_hook(value: object) -> Json:
    """Encode an unknown variant unchanged, as msgspec's `enc_hook`. Raises NotImplementedError for anything else."""
    if isinstance(value, UnknownVariant):
        return value.data
    raise NotImplementedError(
        f"{type(value).__name__} cannot be converted to JSON; use the types of dragoman.protocol.v1"
    )
