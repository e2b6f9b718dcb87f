"""The instructions of a model: its role, the session's directories, and the project's own instructions."""

import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.agent.workspace.workspace import Workspace

PROJECT_FILE = "AGENTS.md"
MAX_PROJECT_LENGTH = 64 * 1024
"""Instructions of a project that are longer than this are cut: they are part of every request."""


async def instructions_for(workspace: "Workspace", own: str) -> str:
    """Put together the package's own words, those of the agent file, and the project's `AGENTS.md`."""
    parts = [
        _own_words(),
        f"You work in {workspace.cwd} on {sys.platform}. Relative paths are relative to it.",
    ]
    if len(workspace.roots) > 1:
        parts.append("You may also work in " + ", ".join(workspace.roots[1:]) + ".")
    if own.strip():
        parts.append(own.strip())
    project = await _project_words(workspace)
    if project:
        parts.append(project)
    return "\n\n".join(parts)


@cache
def _own_words() -> str:
    # Without importlib.resources, whose import takes longer than all the rest of a first turn.
    return Path(__file__).with_name("system.md").read_text(encoding="utf-8").strip()


async def _project_words(workspace: "Workspace") -> str:
    """Return the nearest instructions: those of the cwd, or of a directory above it that the session has as well."""
    cwd = Path(workspace.cwd)
    for directory in (cwd, *cwd.parents):
        if not (await workspace.find(str(directory))).inside:
            break
        path = str(directory / PROJECT_FILE)
        words = await _read(workspace, path)
        if words:
            return f"From the project's {workspace.show(path)}:\n\n{words[:MAX_PROJECT_LENGTH]}"
    return ""


async def _read(workspace: "Workspace", path: str) -> str:
    """Return the text of a file; "" when it cannot be read, or leads out of the session's directories."""
    try:
        target = await workspace.find(path)
        if not target.inside or await workspace.is_directory(target):
            return ""
        return (await workspace.read_text_if_there(target) or "").strip()
    except DragomanError:
        return ""
