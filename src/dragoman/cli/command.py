"""`-- CMD ARGS…`: the agent that a command is to talk to."""

import sys
from collections.abc import Sequence

OUR_AGENT = (sys.executable, "-m", "dragoman", "agent")


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Cut a command line at its first `--`: our own arguments, and the agent's command (ours when there is none)."""
    arguments = list(argv)
    if "--" not in arguments:
        return arguments, list(OUR_AGENT)
    cut = arguments.index("--")
    return arguments[:cut], arguments[cut + 1 :]
