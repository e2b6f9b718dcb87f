"""The generated types, before they are text."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Field:
    """One property of an object."""

    wire: str
    python: str
    annotation: str
    default: str | None = None
    unstable: bool = False
    default_on_error: bool = False
    default_on_null: bool = False
    skip_invalid_items: bool = False


@dataclass(frozen=True, kw_only=True)
class Struct:
    """One object, with the tag that identifies it as a variant."""

    name: str
    fields: tuple[Field, ...] = ()
    tag: tuple[str, str] | None = None
    base: str | None = None
    unstable: bool = False


@dataclass(frozen=True, kw_only=True)
class Alias:
    """Another name for a type that Python has."""

    name: str
    text: str
    unstable: bool = False


@dataclass(frozen=True, kw_only=True)
class Union:
    """A union that msgspec decodes: every variant has a tag."""

    name: str
    variants: tuple[str, ...]
    takes_unknown: bool
    unstable: bool = False


@dataclass(frozen=True, kw_only=True)
class AnyOf:
    """A union whose variants must be tried one after another."""

    name: str
    tag_field: str | None
    tagged: dict[str, tuple[str, ...]]
    other: tuple[str, ...] | None
    untagged: tuple[str, ...]
    unstable: bool = False


@dataclass(kw_only=True)
class Model:
    """Everything that is generated from one version of the schema."""

    aliases: list[Alias] = field(default_factory=list[Alias])
    structs: dict[str, Struct] = field(default_factory=dict[str, Struct])
    unions: list[Union] = field(default_factory=list[Union])
    any_ofs: list[AnyOf] = field(default_factory=list[AnyOf])
    frozen: set[str] = field(default_factory=set[str])
