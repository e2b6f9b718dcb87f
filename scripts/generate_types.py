"""Generate src/dragoman/protocol/generated from the pinned ACP schema. `--check` only compares."""

import argparse
import difflib
import json
import sys
from pathlib import Path

from typegen.marks import render_marks
from typegen.plan import plan
from typegen.render import render_types
from typegen.schema import Schema

PROTOCOL = Path(__file__).resolve().parent.parent / "src" / "dragoman" / "protocol"
VERSIONS = {"v1": "1", "v2": "2"}
DIFF_LINES = 40


def generate(version: str) -> dict[Path, str]:
    """Return the source of each generated file for a version of the protocol."""
    folder = PROTOCOL / "schema" / version
    unstable = json.loads((folder / "schema.unstable.json").read_text("utf-8"))
    stable = json.loads((folder / "schema.json").read_text("utf-8"))
    model = plan(Schema(unstable, stable), VERSIONS[version])
    return {
        PROTOCOL / "generated" / f"{version}.py": render_types(model, VERSIONS[version]),
        PROTOCOL / "generated" / f"{version}_marks.py": render_marks(model, VERSIONS[version]),
    }


def stale(path: Path, source: str) -> str:
    """Return a short diff from a file to its expected source. It is empty if they are equal."""
    current = path.read_text("utf-8") if path.exists() else ""
    names = {"fromfile": path.name, "tofile": f"{path.name}, generated anew", "lineterm": ""}
    lines = list(difflib.unified_diff(current.splitlines(), source.splitlines(), **names, n=1))
    left_off = [f"… and {len(lines) - DIFF_LINES} lines more"] if len(lines) > DIFF_LINES else []
    return "\n".join(lines[:DIFF_LINES] + left_off)


def check(sources: dict[Path, str]) -> int:
    """Report the files that are not up to date and return the exit code."""
    differences = {path: diff for path, source in sources.items() if (diff := stale(path, source))}
    for path, diff in differences.items():
        print(f"{path} is not what the schema gives; run scripts/generate_types.py\n{diff}", file=sys.stderr)
    return 1 if differences else 0


def main() -> int:
    """Write the generated files, or check them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is not up to date")
    arguments = parser.parse_args()
    sources = {path: source for version in VERSIONS for path, source in generate(version).items()}
    if arguments.check:
        return check(sources)
    for path, source in sources.items():
        path.write_text(source, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
