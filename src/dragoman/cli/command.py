"""`-- CMD ARGS…`: the agent that a command is to talk to."""

import os
import shutil
import sys
from collections.abc import Sequence

from dragoman.cli.home import home
from dragoman.errors import DragomanError
from dragoman.text import clean_text

OUR_AGENT = (sys.executable, "-m", "dragoman", "agent")

USAGE_ERROR = 2


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cut a command line at its first `--`: our own arguments, and the agent's command (ours when there is none).

    A single word that is no command may be the name of an agent, or a whole command in quotes. What the agent's entry
    has for the environment goes into ours, which the agent inherits. Ends the process when the agent is known and
    cannot be started, or the quoted command cannot be split.
    """
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, list(OUR_AGENT)
    cut = arguments.index("--")
    own, command = arguments[:cut], arguments[cut + 1 :]
    if len(command) == 1 and command[0] and shutil.which(command[0]) is None:
        command = _by_name(command[0])
    return own, command


def _by_name(name: str) -> list[str]:
    from dragoman.cli.agent_names import known_agents
    from dragoman.client.launch import split_words

    try:
        agent = known_agents(home()).get(name)
        command = list(split_words(name)) if agent is None else agent.require_command()
    except DragomanError as error:
        print(f"dragoman: {clean_text(str(error))}", file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    os.environ.update({} if agent is None else agent.env)
    return command
