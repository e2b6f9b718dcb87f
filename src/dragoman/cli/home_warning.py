"""A warning when others could change the directory of dragoman's sessions and settings."""

import os
import stat
import sys

from dragoman.home import home_name


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
