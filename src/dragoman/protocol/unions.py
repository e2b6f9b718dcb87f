"""Unions that msgspec cannot decode by itself, and variants that are not known yet.

msgspec tells the variants of a union apart by a tag that each of them has. Some unions of ACP are not like
that: a variant without a tag among tagged ones (an MCP server on stdio), variants told apart only by their
fields (text and blob resources), or one that stands for every tag not listed. For a type checker these are plain
unions; at run time each is a subclass of `AnyOf`, which msgspec hands to `decode_hook` as JSON, already parsed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

import msgspec

Json = Any
"""Parsed JSON: dict, list, str, int, float, bool or None."""


class UnknownVariant:
    """A variant of a union that this version does not know, kept as it came."""

    __slots__ = ("data", "tag")

    def __init__(self, tag: str, data: dict[str, Json]) -> None:
        self.tag = tag
        self.data = data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UnknownVariant) and (self.tag, self.data) == (other.tag, other.data)

    __hash__ = None  # pyright: ignore[reportAssignmentType] -- mutable, as every struct is

    def __repr__(self) -> str:
        return f"UnknownVariant(tag={self.tag!r}, data={self.data!r})"


class _AnyOfType(type):
    """Makes `isinstance` work as for the plain union that a type checker sees."""

    variants: tuple[type, ...]

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.variants)


class AnyOf(metaclass=_AnyOfType):
    """A union whose variants are tried in order, the first that fits taken."""

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
        """Return the tag that a value carries, if it carries one that is a string."""
        if cls.tag_field is None or not isinstance(value, dict):
            return None
        tag = cast("dict[str, Json]", value).get(cls.tag_field)
        return tag if isinstance(tag, str) else None


def candidates(union: type[AnyOf], value: Json) -> Iterator[Any]:
    """Yield the variants that a value may be, in the order to try; `UnknownVariant` stands for an unlisted tag."""
    yield from _tagged(union, union.tag(value))
    yield from union.untagged


def _tagged(union: type[AnyOf], tag: str | None) -> tuple[Any, ...]:
    if tag is None:
        return ()
    return union.tagged.get(tag, () if union.other is None else (UnknownVariant,))


def decode_hook(union: type[Any], value: Json) -> Any:
    """Decode an irregular union from parsed JSON, as msgspec's `dec_hook`; raises `ValueError` when nothing fits.

    A value whose tag is known must fit that variant: whether it may be another one is left to the second look, which
    would rather mend it.
    """
    if not issubclass(union, AnyOf):
        raise NotImplementedError(f"{union} is no union of the protocol")
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
    """Encode an unknown variant as it came, as msgspec's `enc_hook`; raises `NotImplementedError` for anything else."""
    if isinstance(value, UnknownVariant):
        return value.data
    raise NotImplementedError(f"{type(value).__name__} has no JSON form; use the types of dragoman.protocol.v1")
