"""The directories that a client names for a session, and the home of an agent."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import InvalidParams


def check_absolute(cwd: str, path: str = "params.cwd") -> None:
    """Check that a path is absolute; raises InvalidParams with an explanation."""
    if not os.path.isabs(cwd):  # noqa: PTH117 -- a Path would turn "" into "."
        hint = "; `~` is for shells, send the home directory itself" if cwd.startswith("~") else ""
        raise InvalidParams(
            path,
            f"{path.removeprefix('params.')} has to be an absolute path, got {cwd!r}{hint}",
            expected="an absolute path",
            got=cwd,
        )
    if "\0" in cwd:
        raise InvalidParams(path, "a path cannot hold a NUL character")


def check_cwd(cwd: str, path: str = "params.cwd") -> str:
    """Return the directory when a session can work in it; raises InvalidParams with an explanation."""
    check_absolute(cwd, path)
    if not os.path.isdir(cwd):  # noqa: PTH112 -- the path is passed on as it came
        there = "is not a directory" if os.path.exists(cwd) else "does not exist"  # noqa: PTH110 -- as above
        raise InvalidParams(path, f"{cwd} {there} here; send an existing directory", got=cwd)
    return cwd


def check_directories(directories: Sequence[str]) -> list[str]:
    """Return the additional directories when a session can work in them; raises InvalidParams with an explanation."""
    return [
        check_cwd(directory, f"params.additionalDirectories[{position}]")
        for position, directory in enumerate(directories)
    ]


def agent_home(name: str) -> Path:
    """Return the directory for the sessions and approvals of an agent of this name; raises BadHome.

    Each name has its own: other characters than letters, digits, `_`, `-` and `.` are written as `%20` in addresses,
    and so is a dot at the beginning, because `.` and `..` are other directories.
    """
    from dragoman.home import home

    return home() / "agents" / (re.sub(r"[^\w.-]|^\.", _percent, name) or "%")


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="surrogatepass"))
