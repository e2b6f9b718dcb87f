"""What can be known of agents before they are started: that their commands are there, and what ours is told."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.bridge import AgentSpec


class NoCommand(DragomanError):
    """An agent cannot be started; says why, and what to do."""


def check_commands(specs: "Iterable[AgentSpec]") -> None:
    """See that each agent has a command that could be started; raises NoCommand."""
    for spec in specs:
        if spec.cwd is not None and not Path(spec.cwd).is_dir():
            raise NoCommand(f"agent {spec.name}: its cwd {spec.cwd} is no directory; make it, or name another")
        problem = _explain(spec)
        if problem is not None:
            raise NoCommand(f"agent {spec.name}: {problem}")


def check_own_agent(model: str | None, agent_file: Path | None) -> None:
    """See that our own agent could begin a session with what it is told; raises DragomanError.

    That is: UnknownModel, ScriptError, ModelFailure, ProfileError and MissingVariable.
    """
    named = [name for name in (model, os.environ.get("DRAGOMAN_MODEL")) if name]
    if not named and agent_file is None:
        return
    from dragoman.agent.models import find_model

    for name in named:
        find_model(name)
    if agent_file is not None:
        from dragoman.agent.profile.lookup import find_explicit

        settings = find_explicit(agent_file).profile.model
        if settings is not None and model is None:
            find_model(settings.name, settings)


def _explain(spec: "AgentSpec") -> str | None:
    command = spec.command[0]
    if not os.path.dirname(command):  # noqa: PTH120 -- a bare command is no path
        if shutil.which(command, path=spec.env.get("PATH")) is not None:
            return None
        return f"there is no command {command}; give its full path, or install it and see that it is on PATH"
    path = Path(spec.cwd or ".") / command
    if not path.is_file():
        return f"there is no command {path}; see that its path is right"
    if not os.access(path, os.X_OK):
        return f"{path} may not be executed; make it executable with chmod +x, or name the program that runs it"
    return None
