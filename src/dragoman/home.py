"""The directory of dragoman's sessions and settings.

`pathlib` is imported when it is needed: it takes 3 ms, and the client of `dragoman agent` waits for its first answer.
"""

import os
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from pathlib import Path


class BadHome(DragomanError):
    """Where the home should be is something that is no directory."""

    def __init__(self, home: str, place: str) -> None:
        self.home = home
        self.place = place
        problem = "is no directory" if place == home else f"cannot be made, because {place} is no directory"
        step = "move that away, or have DRAGOMAN_HOME name a directory"
        super().__init__(f"{home}, where dragoman keeps its sessions and settings, {problem}; {step}")


def home_name() -> str:
    """Return `$DRAGOMAN_HOME`, or `~/.dragoman`, as it stands in the environment."""
    return os.environ.get("DRAGOMAN_HOME") or os.path.expanduser("~/.dragoman")  # noqa: PTH111 -- as above


def home() -> "Path":
    """Return `$DRAGOMAN_HOME`, or `~/.dragoman`, which need not be there yet; raises BadHome."""
    from pathlib import Path

    given = os.environ.get("DRAGOMAN_HOME")
    path = Path(given).absolute() if given else Path.home() / ".dragoman"
    nearest = next((str(place) for place in (path, *path.parents) if os.path.exists(place)), "/")  # noqa: PTH110 -- a Path's raises where it may not look
    if not os.path.isdir(nearest):  # noqa: PTH112 -- as above
        raise BadHome(str(path), nearest)
    return path
