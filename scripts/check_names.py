"""Check that a public class name has one meaning in src/dragoman.

The generated types of ACP version 2 do not count. They share their names with version 1 and are always written with
their module, as in `v2.ToolCall`.
"""

import ast
import sys
from collections import defaultdict
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "dragoman"

DRAFT = "protocol/generated/v2.py"

SHARED_NAMES = {
    "PromptResponse": "the client accepts any stop reason; the name shows where the schema is stricter",
    "Session": "the protocol's word: the agent runs it, the client drives it",
    "Turn": "the protocol's word: the agent runs it, the client waits for it",
}
"""Names that several packages may define, once each, with the reason."""


def main() -> int:
    """Print each name with two meanings. Return 1 if there is one."""
    # A shared name may be defined once per package, and any other name once in total.
    places: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(SOURCE.rglob("*.py")):
        path = file.relative_to(SOURCE)
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and path.as_posix() != DRAFT:
                places[node.name].append(path)
    faults = 0
    for name, paths in sorted(places.items()):
        packages = {path.parts[0] for path in paths}
        if len(paths) > (len(packages) if name in SHARED_NAMES else 1):
            print(f"{name} is defined in {', '.join(map(str, paths))}: rename all but one", file=sys.stderr)
            faults += 1
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
