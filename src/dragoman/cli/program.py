"""`dragoman agent MODULE:NAME`: serve an agent from a Python module that uses `dragoman.agent`."""

import os
import sys
from importlib import import_module
from typing import Any

from dragoman.agent import Agent
from dragoman.cli.exit_codes import USAGE
from dragoman.cli.output import print_error
from dragoman.errors import DragomanError


class InvalidProgramError(DragomanError):
    """MODULE:NAME does not name an agent. The message names the object found and the expected form."""


def run_program(place: str, option: str | None, store: str | None = None) -> int:
    """Serve until the client closes stdin. Return 2 for an invalid place or store."""
    if option is not None:
        print_error("agent", f"options of dragoman's own agent cannot be used with {place!r}; leave out {option!r}")
        return USAGE
    try:
        agent = find_agent(place)
        if store is not None:
            agent.keep_sessions_in(store)
    except DragomanError as error:
        print_error("agent", error)
        return USAGE
    agent.run()
    return 0


def find_agent(place: str) -> Agent:
    """Return the agent at MODULE:NAME. The working directory is added to the path.

    Raises InvalidProgramError.
    """
    module_name, colon, name = place.partition(":")
    if not module_name or not colon or not name:
        module = place.partition(":")[0].rpartition("/")[2].removesuffix(".py") or "notes_agent"
        raise InvalidProgramError(f"{place!r} does not name an agent; expected MODULE:NAME, such as {module}:agent")
    if "/" in module_name or module_name.endswith(".py"):
        directory, _, file = module_name.rpartition("/")
        goes = f"cd {directory}, then " if directory else ""
        right = f"{file.removesuffix('.py')}:{name}"
        raise InvalidProgramError(
            f"{module_name} is a file, not a module; {goes}dragoman agent {right}, or python {module_name}"
        )
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 -- pathlib takes 3 ms
    try:
        found: Any = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module exists, but one of its imports does not
        problem = f"no module {module_name} here or among the installed packages"
        raise InvalidProgramError(f"{problem}; run this in the directory of {module_name.split('.')[0]}.py") from None
    for part in name.split("."):
        if not hasattr(found, part):
            names: dict[str, Any] = getattr(found, "__dict__", {})
            known = sorted(key for key, value in names.items() if isinstance(value, Agent))
            hint = f"; it has {', '.join(known)}" if known else ""
            raise InvalidProgramError(f"{module_name} has no {part}{hint}")
        found = getattr(found, part)
    if not isinstance(found, Agent):
        raise InvalidProgramError(f"{place} is {type(found).__name__}; expected an Agent of dragoman.agent")
    return found
