"""One line on the terminal with the running measure."""

import sys


def show(text: str) -> None:
    """Replace the line; silent when stderr is no terminal."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)


def clear() -> None:
    """Take the line away."""
    show("")
