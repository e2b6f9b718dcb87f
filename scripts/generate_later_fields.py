"""Generate src/dragoman/check/judge/later.py: fields of a later version on types of this one. `--check` compares.

The schemas of both versions are pinned in src/dragoman/protocol/schema.
"""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
from generated_file import write_or_check

from dragoman.protocol.generated import v1

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "dragoman" / "protocol" / "schema" / "v2" / "schema.unstable.json"
TARGET = ROOT / "src" / "dragoman" / "check" / "judge" / "later.py"

HEAD = '''\
"""Fields that the version 2 draft adds to types of version 1.

Made by scripts/generate_later_fields.py. These fields are not extensions, because all names are reserved for later
versions.
"""

LATER: dict[str, frozenset[str]] = {
'''


def find_later(definitions: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names that a type has only in the later version, for each type that both versions have."""
    found: dict[str, list[str]] = {}
    for name, type_ in sorted(vars(v1).items()):
        if isinstance(type_, type) and issubclass(type_, msgspec.Struct) and name in definitions:
            known = {field.encode_name for field in msgspec.structs.fields(type_)}
            known |= {"_meta", type_.__struct_config__.tag_field}
            if later := sorted(definitions[name].get("properties", {}).keys() - known):
                found[name] = later
    return found


def generate() -> str:
    """Return the source of the module."""
    later = find_later(json.loads(SCHEMA.read_text("utf-8"))["$defs"])
    rows = (
        f'    "{name}": frozenset({{{", ".join(f"{each!r}" for each in names)}}}),' for name, names in later.items()
    )
    return HEAD + "\n".join(rows).replace("'", '"') + "\n}\n"


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, generate, __doc__))
