"""Writes the types as Python source."""

import textwrap
from collections.abc import Iterable, Iterator

from dragoman.protocol.unions import wire_name
from typegen.annotations import INTEGERS
from typegen.model import Alias, AnyOf, Field, Model, Struct

WIDTH = 120

_HEADER = '''"""The types of ACP, version {version}, as msgspec structs.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
What is marked unstable is not part of the stable schema. Some structs are frozen because they are default
values, shared by all that have them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from dragoman.protocol.unions import AcpStruct, AnyOf, UnknownVariant
'''


def render_types(model: Model, version: str) -> str:
    """Return the source of the module of types."""
    sections = [
        _HEADER.format(version=version),
        "\n".join(f"{name} = {text}" for name, text in INTEGERS.items()) + "\n",
        "".join(_alias(alias) for alias in model.aliases if not _is_late(model, alias)),
        *(_struct(model, struct) for struct in _in_order(model)),
        "".join(_alias(alias) for alias in model.aliases if _is_late(model, alias)),
        _unions(model),
        _all(model),
    ]
    return "\n\n".join(section for section in sections if section)


def _is_late(model: Model, alias: Alias) -> bool:
    return any(part in model.structs for part in alias.text.split(" | "))


def _alias(alias: Alias) -> str:
    return _assign(alias.name, alias.text.split(" | ") if "[" not in alias.text else [alias.text], alias.unstable)


def _assign(name: str, parts: list[str], unstable: bool = False, indent: str = "") -> str:
    comment = "  # unstable" if unstable else ""
    line = f"{indent}{name} = {' | '.join(parts)}{comment}"
    if len(line) <= WIDTH:
        return line + "\n"
    if len(parts) == 1:
        head, _, rest = parts[0].partition("[")
        items = "".join(f"{indent}    {item},\n" for item in rest[:-1].split(", "))
        return f"{indent}{name} = {head}[{comment}\n{items}{indent}]\n"
    rows = "".join(f"{indent}    {'| ' if index else ''}{part}\n" for index, part in enumerate(parts))
    return f"{indent}{name} = ({comment}\n{rows}{indent})\n"


def fill(items: Iterable[str]) -> str:
    """Return the lines of a literal, each with as many items as fit."""
    text = "".join(f"{item}, " for item in items).rstrip()
    lines = textwrap.wrap(text, WIDTH - 4, break_long_words=False, break_on_hyphens=False)
    return "".join(f"    {line}\n" for line in lines)


def _struct(model: Model, struct: Struct) -> str:
    options = [struct.base or "AcpStruct"]
    if struct.tag:
        options += [f'tag_field="{struct.tag[0]}"', f'tag="{struct.tag[1]}"']
    options += ["kw_only=True", *(["frozen=True"] if struct.name in model.frozen else [])]
    for each in struct.fields:
        if wire_name(each.python) != each.wire:
            raise ValueError(f"{struct.name}.{each.wire} does not follow from {each.python}; see AcpStruct")
    body = "".join(_field(each) for each in struct.fields) or "    pass\n"
    return _class(struct.name, options, struct.unstable) + body


def _class(name: str, options: list[str], unstable: bool, indent: str = "") -> str:
    comment = "  # unstable" if unstable else ""
    line = f"{indent}class {name}({', '.join(options)}):{comment}"
    if len(line) <= WIDTH:
        return line + "\n"
    return f"{indent}class {name}({comment}\n" + "".join(f"{indent}    {each},\n" for each in options) + f"{indent}):\n"


def _field(each: Field) -> str:
    default = "" if each.default is None else f" = {each.default}"
    comment = "  # unstable" if each.unstable else ""
    return f"    {each.python}: {each.annotation}{default}{comment}\n"


def _in_order(model: Model) -> Iterator[Struct]:
    """Yield the structs so that each follows the structs that its class needs."""
    done: set[str] = set()

    def visit(struct: Struct) -> Iterator[Struct]:
        if struct.name in done:
            return
        done.add(struct.name)
        for name in _needs(struct):
            yield from visit(model.structs[name])
        yield struct

    for struct in model.structs.values():
        yield from visit(struct)


def _needs(struct: Struct) -> Iterator[str]:
    if struct.base:
        yield struct.base
    for each in struct.fields:
        if each.default and each.default.endswith("()"):
            yield each.default.removesuffix("()")


def _unions(model: Model) -> str:
    static = [*(_static(each.name, each.variants, each.takes_unknown, each.unstable) for each in model.unions)]
    static += [_static(each.name, _names(each), each.other is not None, each.unstable) for each in model.any_ofs]
    dynamic = [_assign(each.name, list(each.variants), each.unstable, "    ") for each in model.unions]
    dynamic += ["\n" + _any_of(each) for each in model.any_ofs]
    return "if TYPE_CHECKING:\n" + "".join(static) + "else:\n" + "".join(dynamic)


def _static(name: str, variants: Iterable[str], takes_unknown: bool, unstable: bool) -> str:
    return _assign(name, [*variants, *(["UnknownVariant"] if takes_unknown else [])], unstable, "    ")


def _names(union: AnyOf) -> list[str]:
    return [*(name for names in union.tagged.values() for name in names), *union.untagged]


def _any_of(union: AnyOf) -> str:
    options = ["AnyOf"]
    if union.tag_field:
        options += [f'tag_field="{union.tag_field}"', f"tagged={{{_tagged(union)}}}"]
    if union.other is not None:
        options.append(f"other={_tuple(union.other)}")
    if union.untagged:
        options.append(f"untagged={_tuple(union.untagged)}")
    return _class(union.name, options, union.unstable, "    ") + "        pass\n"


def _tagged(union: AnyOf) -> str:
    rows = [f'"{tag}": {_tuple(names)}' for tag, names in union.tagged.items()]
    line = ", ".join(rows)
    if len(line) <= WIDTH - 24:
        return line
    return "\n" + "".join(f"            {row},\n" for row in rows) + "        "


def _tuple(names: tuple[str, ...]) -> str:
    return f"({names[0]},)" if len(names) == 1 else f"({', '.join(names)})"


def _all(model: Model) -> str:
    names = {alias.name for alias in model.aliases} | {name for name in model.structs if not name.startswith("_")}
    names |= {union.name for union in (*model.unions, *model.any_ofs)} | {"UnknownVariant"}
    return "__all__ = [\n" + fill(f'"{name}"' for name in sorted(names)) + "]\n"
