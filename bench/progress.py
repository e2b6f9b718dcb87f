"""One line on the terminal that names the running measure."""

import sys


def show(text: str) -> None:
    """Replace the line. Print nothing if stderr is not a terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Remove the line."""
    show("")
