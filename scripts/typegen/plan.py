"""Decides which Python type each definition of the schema becomes."""

import keyword
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from typegen.annotations import annotate, annotate_enum, default_of, is_scalar_union
from typegen.model import Alias, AnyOf, Field, Model, Struct, Union
from typegen.names import CLOSED_UNIONS, MERGED, UPSERTS, UPSERTS_OF_VERSION_2, VARIANT_NAMES
from typegen.schema import (
    Node,
    Schema,
    is_anything,
    is_other,
    pascal,
    properties,
    ref_name,
    snake,
    tag_of,
    tag_of_other,
    variant_title,
    variants,
)

Tag = tuple[str, str]


def plan(schema: Schema, version: str) -> Model:
    """Return the types for every definition of the schema."""
    planner = _Planner(schema, UPSERTS | (UPSERTS_OF_VERSION_2 if version == "2" else {}))
    for name, node in schema.defs.items():
        planner.add(name, node)
    return planner.model


class _Planner:
    def __init__(self, schema: Schema, upserts: Mapping[str, AbstractSet[str]]) -> None:
        self.schema = schema
        self.model = Model()
        self._upserts = upserts
        self._part_of_others = {*_scopes(schema), *_own_variants(schema)}

    def add(self, name: str, node: Node) -> None:
        if name in self._part_of_others:
            return
        if name in MERGED:
            self._struct(Struct(name=name, fields=self._merged_fields(name)), name)
            return
        enum = annotate_enum(node)
        if enum is not None:
            self._alias(name, enum)
        elif not variants(node):
            self._add_plain(name, node)
        elif any(is_anything(each) for each in variants(node)):
            self._alias(name, "Any")
        elif is_scalar_union(node):
            self._alias(name, annotate(node))
        elif "discriminator" in node:
            self._add_union(name, node)
        else:
            self._add_any_of(name, node)

    def _add_plain(self, name: str, node: Node) -> None:
        if node.get("type") != "object":
            self._alias(name, annotate(node))
        else:
            self._struct(Struct(name=name, fields=self._fields(name, node), tag=self._own_tag(node)), name)

    def _alias(self, name: str, text: str) -> None:
        self.model.aliases.append(Alias(name=name, text=text, unstable=self._is_unstable(name)))

    def _struct(self, struct: Struct, owner: str, part: str | None = None) -> str:
        self.model.structs[struct.name] = replace(struct, unstable=self._is_unstable(owner, part))
        return struct.name

    def _add_union(self, name: str, node: Node) -> None:
        names = [self._variant(name, node, each)[0] for each in variants(node)]
        self.model.unions.append(
            Union(
                name=name,
                variants=tuple(names),
                takes_unknown=name not in CLOSED_UNIONS,
                unstable=self._is_unstable(name),
            )
        )

    def _add_any_of(self, name: str, node: Node) -> None:
        # A union of one variant is an alias. Otherwise its variants are told apart by tag, then by trying.
        each = variants(node)
        if len(each) == 1:
            self._alias(name, annotate(each[0]))
            return
        tags = {tag[0] for variant in each if (tag := tag_of(variant))}
        tagged = {tag[1]: self._variant(name, node, variant) for variant in each if (tag := tag_of(variant))}
        others = [self._variant(name, node, variant) for variant in each if is_other(variant)]
        untagged = [
            self._variant(name, node, variant) for variant in each if not tag_of(variant) and not is_other(variant)
        ]
        self.model.any_ofs.append(
            AnyOf(
                name=name,
                tag_field=tags.pop() if tags else None,
                tagged=tagged,
                other=others[0] if others else None,
                untagged=tuple(each for names in untagged for each in names),
                unstable=self._is_unstable(name),
            )
        )

    def _variant(self, union: str, node: Node, variant: Node) -> tuple[str, ...]:
        """Add the structs of one variant, including the common properties of the union."""
        if variant.get("type") == "array":
            return (annotate(variant),)
        tag, ref, title = tag_of(variant), ref_name(variant), variant_title(variant)
        common = self._fields(union, node)
        own = self._fields(union, variant)
        if is_other(variant):
            name, fields = f"_{union}Other", _meta_last(common + own)
            return self._scoped(union, title, variant, Struct(name=name, fields=fields)) if fields else ()
        if ref is None:
            name, fields = VARIANT_NAMES[union, title], _meta_last(common + own)
            return (self._struct(Struct(name=name, fields=fields, tag=tag), union, title),)
        definition = self.schema.defs[ref]
        if not self.schema.is_used_once(ref):
            name = VARIANT_NAMES.get((union, title), pascal(title))
            return (self._struct(Struct(name=name, base=ref, tag=tag, fields=common), union, title),)
        fields = _meta_last(common + self._fields(ref, definition) + own)
        names = self._scoped(union, title, definition, Struct(name=ref, fields=fields, tag=tag))
        if names != (ref,):
            self._alias(ref, " | ".join(names))
        return names

    def _scoped(self, union: str, title: str, node: Node, struct: Struct) -> tuple[str, ...]:
        """Add the struct, once for each scope if the node requires one of several."""
        scopes = variants(node)
        if not scopes:
            return (self._struct(struct, union, title),)
        return tuple(
            self._struct(
                Struct(
                    name=_scope_name(struct.name, variant_title(scope)),
                    fields=_meta_last(struct.fields + self._scope_fields(scope)),
                    tag=struct.tag,
                ),
                union,
                title,
            )
            for scope in scopes
        )

    def _scope_fields(self, scope: Node) -> tuple[Field, ...]:
        name = ref_name(scope) or ""
        return self._fields(name, self.schema.defs[name])

    def _merged_fields(self, name: str) -> tuple[Field, ...]:
        """Return the fields of a union and of all its variants. Fields of only some variants are optional."""
        node = self.schema.defs[name]
        own = self._fields(name, node)
        found = {field.wire: field for field in own}
        for variant in variants(node):
            tag, ref = tag_of(variant), ref_name(variant)
            if tag and tag[0] not in found:
                found[tag[0]] = Field(wire=tag[0], python=snake(tag[0]), annotation="str")
            for field in self._part_fields(ref) if ref else ():
                found.setdefault(field.wire, field)
        return _meta_last(tuple(found.values()))

    def _part_fields(self, name: str) -> tuple[Field, ...]:
        return self._merged_fields(name) if name in MERGED else self._fields(name, self.schema.defs[name])

    def _fields(self, owner: str, node: Node) -> tuple[Field, ...]:
        required = node.get("required", ())
        return _meta_last(
            tuple(
                self._field(owner, wire, each, required=wire in required)
                for wire, each in properties(node).items()
                if "const" not in each and wire != tag_of_other(node) and not self._is_tag(each)
            )
        )

    def _field(self, owner: str, wire: str, node: Node, *, required: bool) -> Field:
        annotation, default = annotate(node), None
        if wire in self._upserts.get(owner, ()):
            annotation, default = annotation if annotation == "Any" else f"{annotation} | UnsetType", "UNSET"
        elif not required:
            default = default_of(node)
            if default is None:
                default = "None"
                annotation += " | None" if annotation != "Any" else ""
        if default and default.endswith("()"):
            self.model.frozen.add(default.removesuffix("()"))
        python = snake(wire)
        return Field(
            wire=wire,
            python=python + "_" if keyword.iskeyword(python) else python,
            annotation=annotation,
            default=default,
            unstable=self._is_unstable_field(owner, wire),
            default_on_error="x-deserialize-default-on-error" in node,
            default_on_null="x-deserialize-default-on-null" in node,
            skip_invalid_items="x-deserialize-skip-invalid-items" in node,
        )

    def _is_tag(self, node: Node) -> bool:
        return self._constant(node) is not None

    def _own_tag(self, node: Node) -> Tag | None:
        for wire, each in properties(node).items():
            constant = self._constant(each)
            if constant is not None:
                return wire, constant
        return None

    def _constant(self, node: Node) -> str | None:
        """Return the only possible value of a property with that default, which is always written, like a tag."""
        name = ref_name(node)
        allowed = [each.get("const") for each in variants(self.schema.defs[name])] if name else []
        return allowed[0] if len(allowed) == 1 and allowed[0] == node.get("default") else None

    def _is_unstable(self, name: str, part: str | None = None) -> bool:
        return not self.schema.is_stable(name, part)

    def _is_unstable_field(self, owner: str, wire: str) -> bool:
        return self.schema.is_stable(owner) and self._is_unstable(owner, wire)


def _scope_name(name: str, scope: str) -> str:
    return VARIANT_NAMES.get((name, scope), name + scope)


def _own_variants(schema: Schema) -> Iterator[str]:
    """Yield the objects that are only one variant of one union. They are added with the union."""
    for node in schema.defs.values():
        for variant in variants(node):
            name = ref_name(variant)
            if name and tag_of(variant) and schema.is_used_once(name):
                yield name


def _scopes(schema: Schema) -> Iterator[str]:
    """Yield the scopes: objects that are only merged into others."""
    for node in schema.defs.values():
        for each in (node, *variants(node)):
            if properties(each) and any(not tag_of(scope) and ref_name(scope) for scope in variants(each)):
                yield from (name for scope in variants(each) if (name := ref_name(scope)) and not tag_of(scope))


def _meta_last(fields: Sequence[Field]) -> tuple[Field, ...]:
    by_wire = {field.wire: field for field in fields}
    return tuple(sorted(by_wire.values(), key=lambda field: field.wire == "_meta"))
