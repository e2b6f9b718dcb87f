"""Generate src/dragoman/check/judge/later.py: names that a later version has for types of this one; `--check` compares.

The schemas of both versions are pinned in src/dragoman/protocol/schema.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoman.protocol.generated import v1

ROOT = Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "src" / "dragoman" / "protocol" / "schema" / "v2" / "schema.unstable.json"
TARGET = ROOT / "src" / "dragoman" / "check" / "judge" / "later.py"

HEAD = '''\
"""Fields of version 2, as far as it is written, on types that version 1 has without them.

Made by scripts/generate_later_fields.py. A field of these is no extension: all names are kept for later versions.
"""

LATER: dict[str, frozenset[str]] = {
'''


def find_later(definitions: dict[str, Any]) -> dict[str, list[str]]:
    """Return the names that a type has in the later version alone, for each type that both have."""
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


def main() -> int:
    """Write the module, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the module is not up to date")
    if not parser.parse_args().check:
        TARGET.write_text(generate(), "utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text("utf-8") == generate():
        return 0
    print(f"{TARGET} is not what the schemas give; run scripts/generate_later_fields.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
