"""The command line: one module a command, imported when it is asked for."""

import sys
from collections.abc import Sequence
from importlib import import_module

from dragoman.cli.home import warn_of_others
from dragoman.descriptors import open_missing
from dragoman.errors import DragomanError

COMMANDS = {
    "agent": "serve ACP on stdin and stdout, for an editor to start",
    "agents": "show the agents that are known by name",
    "chat": "talk with an agent in the terminal",
    "check": "judge an agent, a client or a recorded conversation by the rules of the protocol",
    "completion": "print what completes these commands in a shell",
    "init": "write an agent file, or show how an editor is told of the agent",
    "login": "keep the key of a provider",
    "logout": "forget the key of a provider",
    "mcp": "show the MCP servers that a session would get, or edit them",
    "run": "give an agent one prompt and print its answer",
    "serve": "put an agent behind one address, for browsers and for ACP clients",
    "sessions": "show, export, copy or delete the sessions that an agent keeps",
    "tap": "stand between an editor and an agent, and judge what passes",
}

WITHOUT_HOME = frozenset({"completion"})
"""Commands that keep nothing and look nothing up."""

_ASK_FOR_HELP = frozenset({"-h", "--help"})

FAILED = 1
INTERRUPTED = 128 + 2
USAGE_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    open_missing()
    arguments = list(sys.argv[1:] if argv is None else argv)
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        if name not in WITHOUT_HOME and not _ASK_FOR_HELP.intersection(arguments):
            warn_of_others()
        return _run(name, arguments[1:])
    if name in ("-h", "--help", "help"):
        print(_help())
        return 0
    if name in ("-V", "--version"):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return 0
    print(f"dragoman: there is no command {name!r}\n\n{_help()}", file=sys.stderr)
    return USAGE_ERROR


def _run(name: str, arguments: Sequence[str]) -> int:
    try:
        return import_module(f"dragoman.cli.{name}").main(arguments)
    except KeyboardInterrupt:  # before, or after, the command itself takes care of it
        return INTERRUPTED
    except DragomanError as error:
        from dragoman.cli.output import complain

        complain(name, error)
        return FAILED


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        "dragoman: the session layer of the Agent Client Protocol\n\n"
        f"usage: dragoman COMMAND [OPTIONS]\n\n{rows}\n\n"
        "`dragoman COMMAND --help` tells more; `dragoman --version` tells the version."
    )
