"""The command line of the scripts that generate one file: write it, or with `--check` only compare."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def write_or_check(target: Path, generate: Callable[[], str], description: str | None) -> int:
    """Write the generated text. With `--check`, write nothing and return 1 if the file is not up to date."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when the file is not up to date")
    if not parser.parse_args().check:
        target.write_text(generate(), "utf-8")
        return 0
    if target.exists() and target.read_text("utf-8") == generate():
        return 0
    print(f"{target} is out of date; run scripts/{Path(sys.argv[0]).name}", file=sys.stderr)
    return 1
