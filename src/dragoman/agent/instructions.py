"""What a model is told before the conversation: who it is, where it works, and what the project wants."""

import sys
from importlib import resources
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
        resources.files("dragoman.agent").joinpath("system.md").read_text(encoding="utf-8").strip(),
        f"You work in {workspace.cwd} on {sys.platform}. Relative paths are relative to it.",
    ]
    if len(workspace.roots) > 1:
        parts.append("You may also work in " + ", ".join(workspace.roots[1:]) + ".")
    if own.strip():
        parts.append(own.strip())
    project = await _project_words(workspace)
    if project:
        parts.append(f"From the project's {PROJECT_FILE}:\n\n{project}")
    return "\n\n".join(parts)


async def _project_words(workspace: "Workspace") -> str:
    try:
        words = await workspace.read_text_if_there(await workspace.find(PROJECT_FILE))
    except DragomanError:
        return ""
    return (words or "").strip()[:MAX_PROJECT_LENGTH]
