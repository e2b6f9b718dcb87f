"""The directory of dragoman's sessions and settings.

`pathlib` is imported only when needed. It takes 3 ms, and the client of `dragoman agent` waits for the first answer.
"""

import os
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from pathlib import Path


class InvalidHomeError(DragomanError):
    """The path of the home is not a directory."""

    def __init__(self, home: str, place: str) -> None:
        self.home = home
        self.place = place
        problem = "is not a directory" if place == home else f"cannot be created, because {place} is not a directory"
        step = "move that away, or set DRAGOMAN_HOME to a directory"
        super().__init__(f"{home}, where dragoman stores its sessions and settings, {problem}; {step}")


def home_name() -> str:
    """Return `$DRAGOMAN_HOME` or `~/.dragoman`, as it is written in the environment."""
    return os.environ.get("DRAGOMAN_HOME") or os.path.expanduser("~/.dragoman")  # noqa: PTH111 -- as above


def home() -> "Path":
    """Return `$DRAGOMAN_HOME` or `~/.dragoman`, which need not exist. Raises InvalidHomeError."""
    from pathlib import Path

    variable = os.environ.get("DRAGOMAN_HOME")
    path = Path(variable).absolute() if variable else Path.home() / ".dragoman"
    nearest = next((str(place) for place in (path, *path.parents) if os.path.exists(place)), "/")  # noqa: PTH110 -- Path.exists raises without search permission
    if not os.path.isdir(nearest):  # noqa: PTH112 -- as above
        raise InvalidHomeError(str(path), nearest)
    return path
