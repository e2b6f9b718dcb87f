"""Writes the schema's marks as a module of tables, which is read only if a message does not fit."""

from collections.abc import Callable, Iterable, Iterator

from typegen.model import Field, Model, Struct
from typegen.render import fill

_HEADER = '''"""Marks on the types of ACP, version {version}, by the names of the wire.

Made by scripts/generate_types.py: change that, or the schema in protocol/schema, not this file.
"""
'''


def render_marks(model: Model, version: str) -> str:
    """Return the source of the module of marks."""
    unions = [f'"{union.variants[0]}": "{union.name}"' for union in model.unions]
    closed = [f'"{union.name}"' for union in model.unions if not union.takes_unknown]
    return "\n".join(
        [
            _HEADER.format(version=version),
            _table(
                "DEFAULT_ON_ERROR",
                "Fields that fall back to their default when malformed; `_meta` does so everywhere.",
                _marked(model, lambda each: each.default_on_error and each.wire != "_meta"),
            ),
            _table(
                "DEFAULT_ON_NULL",
                "Fields that fall back to their default, or to an empty one, when null.",
                _marked(model, lambda each: each.default_on_null),
            ),
            _table(
                "SKIP_INVALID_ITEMS",
                "Array fields whose malformed items are left out.",
                _marked(model, lambda each: each.skip_invalid_items),
            ),
            _table("UNION_NAMES", "The tagged unions, by their first variant.", unions),
            _table("CLOSED_UNIONS", "Those of them where an unknown tag is always an error.", closed),
        ]
    )


def _table(name: str, meaning: str, rows: Iterable[str]) -> str:
    return f'{name} = {{\n{fill(rows)}}}\n"""{meaning}"""\n'


def _marked(model: Model, has_mark: Callable[[Field], bool]) -> Iterator[str]:
    for struct in model.structs.values():
        for each in _all_fields(model, struct):
            if has_mark(each):
                yield f'"{struct.name}.{each.wire}"'


def _all_fields(model: Model, struct: Struct) -> tuple[Field, ...]:
    inherited = model.structs[struct.base].fields if struct.base else ()
    return inherited + struct.fields
