"""The directory of dragoman's sessions and settings, and a warning when others could change it.

`pathlib` is imported when it is needed: it takes 3 ms, and the client of `dragoman agent` waits for its first answer.
"""

import os
import stat
import sys
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


def warn_of_others() -> None:
    """Say on stderr if the home belongs to another user, or can be written by others; to be called once a command."""
    name = home_name()
    try:
        status = os.stat(name)  # noqa: PTH116 -- as above
    except OSError:
        return  # it is made when it is needed, for this user alone, or that fails in words
    problem = _problem(status, name)
    if problem is not None and sys.stderr is not None:
        print(
            f"dragoman: warning: {name}, where dragoman keeps sessions, keys and what you have allowed, {problem}",
            file=sys.stderr,
        )


def _problem(status: os.stat_result, name: str) -> str | None:
    own_directory = "set DRAGOMAN_HOME to a directory of your own"
    if status.st_uid != os.geteuid():
        return f"belongs to another user (uid {status.st_uid}), who can read and change it; {own_directory}"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"can be changed by other users; run `chmod go-w {name}`, or {own_directory}"
    return None
