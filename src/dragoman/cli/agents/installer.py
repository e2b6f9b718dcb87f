"""What the installers of npm, PyPI and archives have in common: a plan to show, and programs that are run for it."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from dragoman.errors import DragomanError
from dragoman.text import clean_text

RESOLVE_S = 300.0
"""For a package manager to find all the packages of an agent; the largest of the registry take one minute."""

INSTALL_S = 1800.0
"""For it to fetch and unpack them over a slow line."""

_TAIL = 15
_WARNINGS = ("npm warn", "WARNING:")


class InstallFailed(DragomanError):
    """An agent cannot be installed; the message has the reason and the next step."""


class InstallPlan(msgspec.Struct, frozen=True):
    """What would be installed: all of it is pinned, and nothing of it has run."""

    source: Literal["npm", "PyPI", "archive"]
    package: str
    digest: str
    notes: tuple[str, ...] = ()
    """Further lines for the person who is asked."""


class Installer(Protocol):
    """Installs one agent into a directory."""

    def plan(self, place: Path) -> InstallPlan:
        """Find out what would be installed, and run none of it; raises InstallFailed, DownloadFailed."""
        ...

    def install(self, place: Path) -> tuple[str, ...]:
        """Install what the plan says, and nothing else; returns its command. Raises InstallFailed."""
        ...


def run_tool(command: Sequence[str], *, cwd: Path, timeout_s: float, env: Mapping[str, str] | None = None) -> str:
    """Run npm, pip or venv to its end and return its output; raises InstallFailed with the end of its words."""
    tool = "pip" if "pip" in command else "venv" if "venv" in command else "npm"
    try:
        done = subprocess.run(  # noqa: S603 -- the words are ours, and names that were checked
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise InstallFailed(f"{tool} was not ready after {timeout_s:.0f} s; see that the network works") from None
    except OSError as error:
        raise InstallFailed(f"{tool} cannot be started: {error.strerror}") from None
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith(_WARNINGS)]
        tail = "\n".join(f"  {line}" for line in lines[-_TAIL:])
        raise InstallFailed(f"{tool} failed with exit code {done.returncode}:\n{clean_text(tail)}")
    return done.stdout
