"""The directories that a client names for a session, and the home directory of an agent."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from dragoman.errors import InvalidParamsError


def check_absolute(cwd: str, path: str = "params.cwd") -> None:
    """Check that a path is absolute. Raises InvalidParamsError with an explanation."""
    if not os.path.isabs(cwd):  # noqa: PTH117 -- a Path would turn "" into "."
        hint = "; `~` is for shells, send the home directory itself" if cwd.startswith("~") else ""
        raise InvalidParamsError(
            path,
            f"{path.removeprefix('params.')} must be an absolute path, got {cwd!r}{hint}",
            expected="an absolute path",
            got=cwd,
        )
    if "\0" in cwd:
        raise InvalidParamsError(path, "a path cannot hold a NUL character")


def check_cwd(cwd: str, path: str = "params.cwd") -> str:
    """Return a directory if a session can work in it. Raises InvalidParamsError with an explanation."""
    check_absolute(cwd, path)
    if not os.path.isdir(cwd):  # noqa: PTH112 -- the path is passed on unchanged
        there = "is not a directory" if os.path.exists(cwd) else "does not exist"  # noqa: PTH110 -- as above
        raise InvalidParamsError(path, f"{cwd} {there} here; send an existing directory", got=cwd)
    return cwd


def check_directories(directories: Sequence[str]) -> list[str]:
    """Return the additional directories if a session can work in them.

    Raises InvalidParamsError with an explanation.
    """
    return [
        check_cwd(directory, f"params.additionalDirectories[{position}]")
        for position, directory in enumerate(directories)
    ]


def agent_home(name: str) -> Path:
    """Return the directory for the sessions and approvals of an agent with this name. Raises InvalidHomeError.

    Each name has its own directory. Characters other than letters, digits, `_`, `-` and `.` are percent-encoded. A dot
    at the beginning is encoded as well, because `.` and `..` are other directories.
    """
    from dragoman.home import home

    return home() / "agents" / (re.sub(r"[^\w.-]|^\.", _percent, name) or "%")


def _percent(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode(errors="surrogatepass"))
