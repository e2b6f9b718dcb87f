"""The command line: one module or folder a command, imported when it is asked for."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from dragoman.cli.exit_codes import FAILED, INTERRUPTED, READER_GONE, USAGE
from dragoman.cli.home_warning import warn_of_others
from dragoman.descriptors import open_missing
from dragoman.errors import DragomanError

if TYPE_CHECKING:
    from dragoman.cli.parser import CommandParser

COMMANDS = {
    "agent": "serve ACP on stdin and stdout, for an editor to start",
    "agents": "show the agents that are known by name",
    "attach": "connect an editor, on stdin and stdout, to a bridge that runs already",
    "chat": "talk with an agent in the terminal",
    "check": "judge an agent, a client or a recorded conversation by the rules of the protocol",
    "completion": "print a script that completes these commands in a shell",
    "init": "write an agent file, or show how an editor is told of the agent",
    "login": "keep the key of a provider",
    "logout": "forget the key of a provider",
    "mcp": "show the MCP servers that a session would get, or edit them",
    "run": "give an agent one prompt and print its answer",
    "serve": "put an agent behind one address, for browsers and for ACP clients",
    "sessions": "show, export, copy or delete the sessions that an agent keeps",
    "store": "make, show or fill the database that keeps sessions",
    "tap": "stand between an editor and an agent, and judge what passes",
}

WITHOUT_HOME = frozenset({"completion"})
"""Commands that keep nothing and look nothing up."""

_MODULES = {"logout": "login"}
"""Commands that are in the module of another."""

_ASK_FOR_HELP = frozenset({"-h", "--help"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    A reader of stdout that goes away (`dragoman … | head`) ends every command without a word.
    """
    open_missing()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            return _run(arguments)
        finally:
            _flush_stdout()
    except BrokenPipeError:
        _discard_stdout()
        return READER_GONE


def _run(arguments: list[str]) -> int:
    name = arguments[0] if arguments else "--help"
    if name in COMMANDS:
        if name not in WITHOUT_HOME and not _ASK_FOR_HELP.intersection(arguments):
            warn_of_others()
        return _run_command(name, arguments[1:])
    if name in ("-h", "--help", "help"):
        print(_help())
        return 0
    if name in ("-V", "--version"):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return 0
    from dragoman.cli.options import describe_unknown

    print(f"dragoman: {describe_unknown('command', name, COMMANDS)}\n\n{_help()}", file=sys.stderr)
    return USAGE


def _run_command(name: str, arguments: Sequence[str]) -> int:
    try:
        if name == "agent" and not arguments:  # as editors start it: argparse takes a megabyte and 5 ms
            return import_module("dragoman.cli.agent").main()
        from dragoman.cli.commands import build_parser

        return _parse_and_run(name, build_parser(name), arguments)
    except KeyboardInterrupt:  # before, or after, the command itself takes care of it
        return INTERRUPTED
    except DragomanError as error:
        from dragoman.cli.output import complain

        complain(name, error)
        return FAILED


def _parse_and_run(name: str, parser: "CommandParser", arguments: Sequence[str]) -> int:
    from dragoman.cli.options import UsageError

    parser, options = parser.read(arguments)
    try:
        return import_module(f"dragoman.cli.{_MODULES.get(name, name)}").main(options)
    except UsageError as error:
        parser.error(str(error))


def _flush_stdout() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_stdout()
        step = "see that there is room where stdout leads"
        print(f"dragoman: stdout cannot be written: {error.strerror}; {step}", file=sys.stderr)
        raise SystemExit(FAILED) from None


def _discard_stdout() -> None:
    """Send the rest of the buffer to /dev/null: Python writes it at the end of the process, and would complain."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _help() -> str:
    width = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, text in COMMANDS.items())
    return (
        "dragoman: the session layer of the Agent Client Protocol\n\n"
        f"usage: dragoman COMMAND [OPTIONS]\n\n{rows}\n\n"
        "`dragoman COMMAND --help` tells more; `dragoman --version` tells the version."
    )
