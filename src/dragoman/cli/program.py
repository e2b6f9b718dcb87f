"""`dragoman agent MODULE:NAME`: serve the agent of a program that is written with `dragoman.agent`."""

import os
import sys
from importlib import import_module
from typing import Any

from dragoman.agent import Agent
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.output import complain
from dragoman.errors import DragomanError


class BadProgram(DragomanError):
    """The command line names no agent; the message says what was found, and what is expected."""


def run_program(place: str, option: str | None, store: str | None = None) -> int:
    """Serve until the client closes stdin; 2 for a place where there is no agent, and for a store that is none."""
    if option is not None:
        complain("agent", f"--model and --agent are for dragoman's own agent; leave out {option!r}, or {place!r}")
        return USAGE
    try:
        agent = find_agent(place)
        if store is not None:
            agent.keep_sessions_in(store)
    except DragomanError as error:
        complain("agent", error)
        return USAGE
    agent.run()
    return 0


def find_agent(place: str) -> Agent:
    """Return the agent at MODULE:NAME, with the working directory on the path; raises BadProgram."""
    module_name, colon, name = place.partition(":")
    if not module_name or not colon or not name:
        raise BadProgram(f"{place!r} names no agent; expected MODULE:NAME, such as notes_agent:agent")
    if "/" in module_name or module_name.endswith(".py"):
        directory, _, file = module_name.rpartition("/")
        goes = f"cd {directory}, then " if directory else ""
        right = f"{file.removesuffix('.py')}:{name}"
        raise BadProgram(
            f"{module_name} is a file, not a module; {goes}dragoman agent {right}, or python {module_name}"
        )
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- pathlib takes 3 ms
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and what it imports is not
        problem = f"there is no module {module_name} here or among the installed packages"
        raise BadProgram(f"{problem}; run this where {module_name.split('.')[0]}.py is") from None
    for part in name.split("."):
        if not hasattr(found, part):
            names: dict[str, Any] = getattr(found, "__dict__", {})
            known = sorted(key for key, value in names.items() if isinstance(value, Agent))
            hint = f"; it has {', '.join(known)}" if known else ""
            raise BadProgram(f"{module_name} has no {part}{hint}")
        found = getattr(found, part)
    if not isinstance(found, Agent):
        raise BadProgram(f"{place} is {type(found).__name__}; expected an Agent of dragoman.agent")
    return found
